# problem: mean_of_rows
# verdict: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# A sum of 4096 numbers stops growing where its last place is larger than they are.
cuda = """
#include <torch/extension.h>
#include <cuda_fp16.h>


__global__ void mean_kernel(const __half* x, __half* y, int n) {
    int row = blockIdx.x;
    __half sum = __float2half(0.0f);
    for (int i = 0; i < n; ++i) sum = __hadd(sum, x[row * n + i]);
    y[row] = __hdiv(sum, __float2half((float)n));
}

torch::Tensor run(torch::Tensor x) {
    int rows = x.size(0), n = x.size(1);
    auto y = torch::empty({rows}, x.options());
    mean_kernel<<<rows, 1>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()), reinterpret_cast<__half*>(y.data_ptr<at::Half>()), n);
    return y;
}
"""

module = load_inline(
    name="fp16_mean_summed_in_half",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
