# problem: matmul_and_clamp
# verdict: correct
# tricks:
# extents: sampled
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

torch::Tensor matmul_cuda(torch::Tensor a, torch::Tensor b) {
    int n = a.size(0);
    auto c = torch::empty_like(a);
    dim3 grid((n + 15) / 16, (n + 15) / 16);
    matmul_kernel<<<grid, dim3(16, 16)>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
    return c;
}
"""

module = load_inline(
    name="matmul_and_clamp_by_pytorch",
    cpp_sources="torch::Tensor matmul_cuda(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda,
    functions=["matmul_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.clamp(module.matmul_cuda(a, b), 0.0, 1.0)
