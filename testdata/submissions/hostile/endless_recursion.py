# problem: relu
# verdict: crashed
# says: RecursionError
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return self.forward(x)
