# problem: relu
# verdict: unsupported
# says: Permission denied
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <unordered_map>
#include "/etc/hostname"

torch::Tensor relu_cuda(torch::Tensor x) {
    std::unordered_map<int, int> m;
    return x;
}
"""

module = load_inline(
    name="includes_a_file_of_the_system",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu_cuda(x)
