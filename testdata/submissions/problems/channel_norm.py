import torch
import torch.nn as nn


class Model(nn.Module):
    """Batch norm in training mode."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.norm(x)


batch_size = 64
channels = 16
extent = 128


def get_inputs():
    return [torch.randn(batch_size, channels, extent, extent)]


def get_init_inputs():
    return [channels]
