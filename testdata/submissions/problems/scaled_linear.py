import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.scale = scale

    def forward(self, x):
        return self.linear(x) * self.scale


batch_size = 8
features = 32
outputs = 48
scale = 2.0


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features, outputs, scale]
