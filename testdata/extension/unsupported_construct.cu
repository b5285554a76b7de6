__global__ void nothing_kernel() {}
torch::Tensor odd(torch::Tensor x) {
    nothing_kernel<<<1, 1>>>();
    std::thread worker;
    return x;
}
torch::Tensor fine(torch::Tensor x) { return x; }
