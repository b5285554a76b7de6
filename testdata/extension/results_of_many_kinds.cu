__global__ void copy_kernel(const float* x, float* y, float by, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = by * x[i];
}
static torch::Tensor times(torch::Tensor x, float by) {
    auto y = torch::empty_like(x);
    copy_kernel<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), by, (int)x.numel());
    return y;
}
std::vector<torch::Tensor> both(torch::Tensor x) { return {times(x, 2.0f), times(x, 3.0f)}; }
std::tuple<torch::Tensor, int64_t> pair(torch::Tensor x) {
    auto [y, n] = std::make_tuple(times(x, 2.0f), x.numel());
    return std::make_tuple(y, n);
}
void in_place(torch::Tensor x) {
    copy_kernel<<<1, 32>>>(x.data_ptr<float>(), x.data_ptr<float>(), 10.0f, (int)x.numel());
}
double number(torch::Tensor x) { return x.sum().item<double>(); }
