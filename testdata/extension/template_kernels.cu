template <int BLOCK, bool TWICE, typename T>
__global__ void fill_kernel(T* y, T v, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = TWICE ? v + v : v;
}
template <typename T>
__global__ void negate_kernel(T* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = -y[threadIdx.x];
}
template <int BLOCK, typename T>
void run(T* y, T v, int n, bool twice) {
    int blocks = (n + BLOCK - 1) / BLOCK;
    if (twice) fill_kernel<BLOCK, true, T><<<blocks, BLOCK>>>(y, v, n);
    else fill_kernel<BLOCK, false, T><<<blocks, BLOCK>>>(y, v, n);
}
torch::Tensor filled(int n, float v, bool twice) {
    auto y = torch::empty({n}, torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA));
    run<32>(y.data_ptr<float>(), v, n, twice);
    negate_kernel<<<1, 64>>>(y.data_ptr<float>(), n);
    return y;
}
