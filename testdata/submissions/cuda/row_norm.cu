// problem: tasks/row_norm
// verdict: correct
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_norm_kernel(const float* x, const float* w, float* y, int features, float eps) {
    __shared__ float part[128];
    const float* row = x + (size_t)blockIdx.x * features;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < features; c += 128) sum += row[c] * row[c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    float scale = rsqrtf(part[0] / features + eps);
    for (int c = threadIdx.x; c < features; c += 128) y[(size_t)blockIdx.x * features + c] = row[c] * scale * w[c];
}

torch::Tensor row_norm(torch::Tensor x, torch::Tensor weight, float eps) {
    TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
    x = x.contiguous();
    auto y = torch::empty_like(x);
    row_norm_kernel<<<x.size(0), 128>>>(x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), x.size(1), eps);
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("forward", &row_norm, "rows over the root of their mean square (CUDA)");
}
