# problem: first_token
# verdict: unsupported
# tricks:
# A kernel whose result the answer does not depend on, in the reference either: that it can be left out is no trick, and
# nothing tells a right one from a wrong one.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu_cuda(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

module = load_inline(
    name="first_token_kernel_that_nothing_shows",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, features))
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        y = module.relu_cuda(x.contiguous())
        tokens = torch.cat([self.token.expand(y.shape[0], 1, -1), y.unsqueeze(1)], dim=1)
        return self.linear(tokens)[:, 0]
