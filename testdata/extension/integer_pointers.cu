__global__ void gather_kernel(const float* x, const int64_t* at, const bool* keep, float* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = keep[threadIdx.x] ? x[at[threadIdx.x]] : 0.0f;
}
torch::Tensor gather(torch::Tensor x, torch::Tensor at, torch::Tensor keep) {
    auto y = torch::zeros_like(x);
    gather_kernel<<<1, 32>>>(
        x.data_ptr<float>(), at.data_ptr<int64_t>(), keep.data_ptr<bool>(), y.data_ptr<float>(), x.numel());
    return y;
}
