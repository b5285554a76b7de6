"""A recurrent layer, which is lowered from its core operators."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 3, num_layers=2, batch_first=True)
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        out, _ = self.rnn(x, (torch.zeros(2, x.size(0), 3), torch.ones(2, x.size(0), 3)))
        return self.linear(out[:, -1, :])


def get_inputs():
    return [torch.randn(2, 3, 4)]


def get_init_inputs():
    return []
