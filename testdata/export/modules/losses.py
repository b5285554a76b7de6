"""A loss over probabilities, with a scaled input and signs."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, p, q, signs):
        kl = F.kl_div(torch.log(p), q, reduction="batchmean")
        hinge = torch.mean(torch.clamp(1 - p * signs, min=0))
        return kl + F.smooth_l1_loss(p, q) + hinge


def get_inputs():
    scale = torch.rand(())
    return [
        (torch.rand(4, 9) * scale).softmax(dim=-1),
        torch.rand(4, 9).softmax(dim=-1),
        torch.randint(0, 2, (4, 1)).float() * 2 - 1,
    ]


def get_init_inputs():
    return []
