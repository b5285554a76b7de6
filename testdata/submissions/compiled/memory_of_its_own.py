# problem: relu
# verdict: correct
# says: its host part was compiled by
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <memory>

struct View {
    const float* data;
    int n;
    __host__ __device__ int size() const { return n; }
    __device__ float at(int i) const { return data[i]; }
};

__global__ void relu_kernel(View x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x.size()) y[i] = fmaxf(x.at(i), 0.0f);
}

class Scratch {
 public:
    explicit Scratch(size_t bytes) { TORCH_CHECK(cudaMalloc(&data_, bytes) == cudaSuccess, "memory"); }
    ~Scratch() { cudaFree(data_); }
    float* data() const { return data_; }

 private:
    float* data_ = nullptr;
};

torch::Tensor relu_cuda(torch::Tensor x) {
    x = x.contiguous();
    auto scratch = std::make_unique<Scratch>(x.numel() * sizeof(float));
    View view{x.data_ptr<float>(), static_cast<int>(x.numel())};
    relu_kernel<<<dim3((view.size() + 31) / 32), dim3(32)>>>(view, scratch->data());
    auto y = torch::empty_like(x);
    cudaMemcpy(y.data_ptr(), scratch->data(), x.numel() * sizeof(float), cudaMemcpyDeviceToDevice);
    cudaDeviceSynchronize();
    return y;
}
"""

module = load_inline(
    name="memory_of_its_own",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu_cuda(x)
