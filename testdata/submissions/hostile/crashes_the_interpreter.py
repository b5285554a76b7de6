# problem: relu
# verdict: crashed
# says: signal 11
import ctypes

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        ctypes.string_at(0)
