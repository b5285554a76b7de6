# problem: relu
# verdict: crashed
# says: PermissionError
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        with open("/tmp/assay-hostile-was-here", "w") as f:
            f.write("x")
        return torch.relu(x)
