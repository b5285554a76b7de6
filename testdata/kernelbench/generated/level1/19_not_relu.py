# Under a number of the catalogue, and another function.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x - x.mean(dim=1, keepdim=True)


dim = 40


def get_inputs():
    return [torch.randn(6400, dim)]


def get_init_inputs():
    return []
