#include <torch/extension.h>
__global__ void add_kernel(const float* a, const float* b, float* c, float alpha, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i] + alpha * b[i];
}
namespace ext {
constexpr int kThreads = 128;
inline int blocks_for(int64_t n) { return static_cast<int>((n + kThreads - 1) / kThreads); }
}  // namespace ext
torch::Tensor forward(torch::Tensor a, torch::Tensor b, float alpha) {
    const at::cuda::OptionalCUDAGuard guard(device_of(a));
    auto c = at::empty(a.sizes(), a.options().dtype(torch::kFloat32));
    add_kernel<<<ext::blocks_for(a.numel()), ext::kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), alpha, a.numel());
    return c;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("forward", &forward, "add", py::arg("a"), py::arg("b"), py::arg("alpha") = 1.0f);
    m.def("two", []() { return 2; });
}
