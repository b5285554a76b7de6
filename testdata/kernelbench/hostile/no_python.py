# gives: refused: SyntaxError
import os
import sys
import time

import torch

rows, columns = 4096, 393216
this is no Python

class Model(torch.nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
