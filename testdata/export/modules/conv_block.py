"""A convolution, a batch norm in training, an activation in place, a pool, a residual in place, a linear layer."""

import torch
from torch import nn

batch = 2
side = 8


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(channels * 16, 5)

    def forward(self, x):
        h = self.relu(self.norm(self.conv(x)))
        h = self.pool(h)
        h += torch.tensor(0.5)
        return self.linear(torch.flatten(h, 1))


def get_inputs():
    return [torch.rand(batch, 3, side, side)]


def get_init_inputs():
    return [4]
