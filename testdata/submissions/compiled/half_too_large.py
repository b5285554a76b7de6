# problem: relu
# verdict: wrong
# says: its host part was compiled by
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <unordered_map>

__constant__ float scale[2];

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scale[0] * fmaxf(x[i], scale[1]);
}

torch::Tensor relu_cuda(torch::Tensor x) {
    std::unordered_map<int, float> values{{0, 1.5f}, {1, 0.0f}};
    float host[2] = {values.at(0), values.at(1)};
    cudaMemcpyToSymbol(scale, host, sizeof(host));
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

module = load_inline(
    name="half_too_large",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu_cuda(x)
