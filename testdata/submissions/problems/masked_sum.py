import torch
import torch.nn as nn


class Model(nn.Module):
    """Sum of each row's elements whose mask is set."""

    def forward(self, x, mask):
        return torch.where(mask.bool(), x, torch.zeros_like(x)).sum(dim=1)


rows = 32
columns = 96


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns) > 0]


def get_init_inputs():
    return []
