# problem: relu
# verdict: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>


template <typename T>
__global__ void relu_kernel(const T* x, T* y, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > T(0) ? x[i] : T(0);
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int64_t n = x.numel();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "relu", [&] {
        relu_kernel<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
    });
    return y;
}
"""

module = load_inline(
    name="bf16_relu_by_dispatch",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
