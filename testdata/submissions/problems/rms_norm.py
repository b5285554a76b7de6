import torch
import torch.nn as nn


class Model(nn.Module):
    """Each row over the root of its mean square; the width is the input's, and the argument says the same."""

    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)


rows = 32
features = 96


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]
