__global__ void bias_kernel(float* y, const float* b, int rows, int columns) {
    int i = threadIdx.x;
    if (i < rows * columns) y[i] += b[i % columns];
}
torch::Tensor linear(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> b) {
    auto y = torch::mm(x, w.t());
    if (b.has_value()) {
        bias_kernel<<<1, 64>>>(y.data_ptr<float>(), b->data_ptr<float>(), y.size(0), y.size(1));
    }
    y *= 2.0;
    return 1.0 + y;
}
