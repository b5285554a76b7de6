__global__ void copy_kernel(const float* x, float* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}
torch::Tensor raw(torch::Tensor x) {
    auto y = torch::empty({x.size(0), x.size(1)}, x.options());
    copy_kernel<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
torch::Tensor dense(torch::Tensor x) { return raw(x.contiguous()); }
torch::Tensor views(torch::Tensor x) {
    TORCH_CHECK(!x.is_contiguous());
    return raw(x.t().contiguous()).view({-1}).slice(0, 1, 5).reshape({2, 2}).permute({1, 0}).unsqueeze(0).contiguous();
}
