# problem: softmax
# verdict: undefined_behaviour
# tricks:
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void softmax_kernel(const float* x, float* y, int columns) {
    __shared__ float part[128];
    __shared__ int width;
    width = columns;  // every thread writes the same: a race that no value shows
    const float* row = x + blockIdx.x * columns;
    int t = threadIdx.x;
    float top = -INFINITY;
    for (int c = t; c < columns; c += 128) top = fmaxf(top, row[c]);
    part[t] = top;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (t < s) part[t] = fmaxf(part[t], part[t + s]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (int c = t; c < width; c += 128) sum += expf(row[c] - top);
    part[t] = sum;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    for (int c = t; c < columns; c += 128) y[blockIdx.x * columns + c] = expf(row[c] - top) / part[0];
}

torch::Tensor softmax_cuda(torch::Tensor x) {
    auto y = torch::empty_like(x);
    softmax_kernel<<<x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

module = load_inline(
    name="softmax_race",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["softmax_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.softmax_cuda(x)
