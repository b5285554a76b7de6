# gives: died: status 3
import os
import sys
import time

import torch

rows, columns = 4096, 393216


class Model(torch.nn.Module):
    def forward(self, x):
        sys.stderr.write("no more\n")
        sys.stderr.flush()
        os._exit(3)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
