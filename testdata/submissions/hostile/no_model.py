# problem: relu
# verdict: rejected
# says: ModelNew
import torch


class Model(torch.nn.Module):
    pass
