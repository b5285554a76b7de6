# gives: refused: gives a float
import os
import sys
import time

import torch

rows, columns = 4096, 393216


class Model(torch.nn.Module):
    def forward(self, x):
        return [1.0]


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
