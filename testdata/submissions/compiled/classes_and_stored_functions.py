# problem: relu
# verdict: correct
# says: its host part was compiled by
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

template <typename scalar_t, int STEP>
__global__ void relu_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int64_t n) {
    int64_t i = (blockIdx.x * blockDim.x + threadIdx.x) * int64_t(STEP);
    for (int k = 0; k < STEP && i + k < n; ++k) y[i + k] = x[i + k] > scalar_t(0) ? x[i + k] : scalar_t(0);
}

namespace plans {
class Plan {
 public:
    explicit Plan(int threads) : threads_(threads) {}
    virtual ~Plan() = default;
    virtual int blocks(int64_t n) const { return static_cast<int>((n + threads_ - 1) / threads_); }
    int threads() const { return threads_; }

 protected:
    int threads_;
};
class ByFour : public Plan {
 public:
    using Plan::Plan;
    int blocks(int64_t n) const override { return static_cast<int>((n + 4 * threads_ - 1) / (4 * threads_)); }
};
}  // namespace plans

torch::Tensor relu_cuda(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.device().type() == torch::kCUDA, "a CUDA tensor is needed");
    static std::unordered_map<std::string, std::shared_ptr<plans::Plan>> known;
    auto& plan = known["four"];
    if (!plan) plan = std::make_shared<plans::ByFour>(64);
    std::map<std::string, std::function<void(const torch::Tensor&, torch::Tensor&)>> ways;
    ways["four"] = [&plan](const torch::Tensor& a, torch::Tensor& b) {
        AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "relu", [&] {
            relu_kernel<scalar_t, 4><<<plan->blocks(a.numel()), plan->threads(), 0, at::cuda::getCurrentCUDAStream()>>>(
                a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), a.numel());
        });
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    };
    auto y = torch::empty(x.sizes(), x.options().device(torch::kCUDA));
    for (const auto& [name, way] : ways) way(x, y);
    return y;
}
"""

module = load_inline(
    name="classes_and_stored_functions",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["relu_cuda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu_cuda(x)
