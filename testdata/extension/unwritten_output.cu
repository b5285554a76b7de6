__global__ void half_kernel(const float* x, float* y, int n) {
    if (threadIdx.x < n / 2) y[threadIdx.x] = x[threadIdx.x];
}
torch::Tensor half_done(torch::Tensor x) {
    auto y = torch::empty_like(x);
    auto scratch = torch::empty_like(x);
    half_kernel<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    half_kernel<<<1, 32>>>(x.data_ptr<float>(), scratch.data_ptr<float>(), x.numel());
    return y;
}
