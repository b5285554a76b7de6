# The problem `add_clamp` of the end-to-end tests, as its owner has it in PyTorch.
import torch

batch_size = 64
features = 4096


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.offset = torch.nn.Parameter(torch.rand(features))

    def forward(self, x):
        return torch.relu(x + self.offset)


def get_inputs():
    return [torch.rand(batch_size, features)]


def get_init_inputs():
    return [features]
