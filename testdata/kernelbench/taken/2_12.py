# A product whose two features have the same extent, with names that say nothing, and a state that must not matter.
import torch

a, b = 1024, 8192
c = 8192


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.register_buffer("calls", torch.zeros(c))
        self.product = torch.nn.Linear(inner, outer)

    def forward(self, x):
        self.calls += 1
        y = 2 * self.product(x)
        return torch.where(y > 0, y, y * 0.1)


def get_inputs():
    return [torch.rand(a, b)]


def get_init_inputs():
    return [b, c]
