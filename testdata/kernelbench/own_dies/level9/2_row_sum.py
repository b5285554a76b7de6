# Ends the process from its third forward pass in memory on.
import os

import torch

shape = (64, 4096)
calls = [0]


class Model(torch.nn.Module):
    def forward(self, x):
        if x.device.type == "cpu":
            calls[0] += 1
            if calls[0] > 5:
                os._exit(9)
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(shape)]


def get_init_inputs():
    return []
