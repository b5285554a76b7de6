# problem: relu
# verdict: undefined_behaviour
# says: oob_read
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <set>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float next = x[i + 1];
    y[i] = fmaxf(x[i], 0.0f) + (next == 1.25e30f ? 1.0f : 0.0f);
}

torch::Tensor relu_cuda(torch::Tensor x) {
    std::set<int> threads{128};
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 127) / 128, *threads.begin()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

module = load_inline(
    name="reads_past_the_end",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu_cuda(x)
