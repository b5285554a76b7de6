# A module that no catalogue has: two inputs with a number between them, dropout as the official check runs it,
# and two names for one extent.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.dropout = nn.Dropout(0.25)
        self.register_buffer("scale", torch.rand(features))

    def forward(self, x, times, gate):
        return self.dropout(self.linear(x)) * self.scale * times + gate


batch = rows = 4096
features = 24


def get_inputs():
    return [torch.rand(batch, features), 3, torch.randn(rows, features)]


def get_init_inputs():
    return [features]
