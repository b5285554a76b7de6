# problem: relu
# verdict: crashed
# says: lies in host memory
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <list>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu_cuda(torch::Tensor x) {
    std::list<std::vector<float>> copies{std::vector<float>(x.numel(), 1.0f)};
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 255) / 256, 256>>>(copies.front().data(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

module = load_inline(
    name="gives_a_kernel_host_memory",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu_cuda(x)
