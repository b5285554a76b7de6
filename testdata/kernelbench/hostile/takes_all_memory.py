# gives: exhausted: memory
import os
import sys
import time

import torch

rows, columns = 4096, 393216


class Model(torch.nn.Module):
    def forward(self, x):
        if x.device.type == "meta":
            return torch.relu(x)
        return torch.relu(x) + torch.ones(1 << 50)[0]


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
