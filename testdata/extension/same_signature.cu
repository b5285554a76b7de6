extern "C" {
torch::Tensor other(const torch::Tensor& x) { return x; }
}
at::Tensor run(at::Tensor x, const int by, int64_t n, const at::Tensor& y) { return x; }
