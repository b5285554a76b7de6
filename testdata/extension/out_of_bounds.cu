__global__ void shift_kernel(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i <= n) {
        y[i] = x[i] + 1.0f;
    }
}
torch::Tensor shift(torch::Tensor x) {
    auto y = torch::empty_like(x);
    shift_kernel<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0));
    return y;
}
