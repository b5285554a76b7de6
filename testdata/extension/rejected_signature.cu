torch::Tensor run(const torch::Tensor& x, float by) { return x; }
