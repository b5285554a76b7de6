"""A loss over class indices, as a task of robust-kbench: its check leaves integers as they are."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def forward_fn(scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores, classes)


class Model(nn.Module):
    def forward(self, scores, classes, fn=forward_fn):
        return fn(scores, classes)


def get_inputs(batch_size: int = 4096, number: int = 10):
    return [torch.randn(batch_size, number), torch.randint(0, number, (batch_size,))]


input_names = ["scores", "classes"]
