# problem: rms_norm
# verdict: correct
# tricks:
# The row's width comes from the init argument. Another argument with the same input would be a contradiction; other
# widths of both are asked.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>

__global__ void rms_norm_kernel(const float* x, float* y, int rows, int features) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < features; ++c) sum += x[r * features + c] * x[r * features + c];
    float scale = rsqrtf(sum / features + 1e-5f);
    for (int c = 0; c < features; ++c) y[r * features + c] = x[r * features + c] * scale;
}

torch::Tensor rms_norm_cuda(torch::Tensor x, int64_t features) {
    auto y = torch::empty_like(x);
    int rows = x.numel() / features;
    rms_norm_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, features);
    return y;
}
"""

module = load_inline(
    name="rms_norm_by_the_width_it_was_made_with",
    cpp_sources="torch::Tensor rms_norm_cuda(torch::Tensor x, int64_t features);",
    cuda_sources=cuda,
    functions=["rms_norm_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, x):
        return module.rms_norm_cuda(x.contiguous(), self.features)
