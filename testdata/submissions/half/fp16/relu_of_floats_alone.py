# problem: relu
# verdict: crashed
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>


__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

module = load_inline(
    name="fp16_relu_of_floats_alone",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
