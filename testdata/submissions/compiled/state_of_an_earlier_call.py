# problem: relu
# verdict: correct
# says: its host part was compiled by
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <deque>

static int threads = 1;

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

// What this call leaves behind must be there when the next one turns out to be beyond the interpreter.
void prepare(int64_t n) { threads = static_cast<int>(n); }

torch::Tensor relu_cuda(torch::Tensor x) {
    std::deque<int> sizes;
    sizes.push_back(threads);
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + sizes.front() - 1) / sizes.front(), sizes.front()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

module = load_inline(
    name="state_of_an_earlier_call",
    cpp_sources="void prepare(int64_t n); torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["prepare", "relu_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        module.prepare(96)

    def forward(self, x):
        return module.relu_cuda(x)
