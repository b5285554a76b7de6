# A rectifier whose extents are a number and a place of a tuple.
import torch

rows = 4096
shape = (rows, 393216)


class Model(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=0)


def get_inputs():
    return [torch.rand(*shape)]


def get_init_inputs():
    return []
