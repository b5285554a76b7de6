import torch
import torch.nn as nn


def forward_fn(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Rows over the root of their mean square, times a weight."""
    return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + eps) * weight


class Model(nn.Module):
    def __init__(self, features: int, eps: float = 1e-5, init_method: str = "ones"):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(features) if init_method == "random" else torch.ones(features))

    def forward(self, x: torch.Tensor, fn=forward_fn) -> torch.Tensor:
        return fn(x, self.weight, self.eps)


def get_inputs(rows: int = 64, features: int = 128):
    return [torch.randn(rows, features)]
