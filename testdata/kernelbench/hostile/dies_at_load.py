# gives: died: status 4
import os
import sys
import time

import torch

rows, columns = 4096, 393216
os._exit(4)

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
