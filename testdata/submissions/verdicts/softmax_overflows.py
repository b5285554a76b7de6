# problem: softmax
# verdict: wrong
# tricks:
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void softmax_kernel(const float* x, float* y, int rows, int columns) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < columns; ++c) sum += expf(x[r * columns + c]);
    for (int c = 0; c < columns; ++c) y[r * columns + c] = expf(x[r * columns + c]) / sum;
}

torch::Tensor softmax_cuda(torch::Tensor x) {
    auto y = torch::empty_like(x);
    softmax_kernel<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
    return y;
}
"""

module = load_inline(
    name="softmax_overflows",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["softmax_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.softmax_cuda(x)
