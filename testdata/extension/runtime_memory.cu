#define CUDA_OK(call) do { cudaError_t err = (call); if (err != cudaSuccess) { \
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(err)); } } while (0)
__constant__ float table[4];
__global__ void weigh_kernel(const float* x, const float* scale, float* y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i] * table[i % 4] * scale[0];
}
extern "C" void launch_weigh(const float* x, const float* scale, float* y, int n) {
    weigh_kernel<<<1, 32>>>(x, scale, y, n);
}
torch::Tensor weigh(torch::Tensor x) {
    std::vector<float> host = {1.0f, 10.0f, 100.0f};
    host.push_back(1000.0f);
    CUDA_OK(cudaMemcpyToSymbol(table, host.data(), host.size() * sizeof(float)));
    float* scale = nullptr;
    float two = 2.0f;
    CUDA_OK(cudaMalloc((void**)&scale, sizeof(float)));
    CUDA_OK(cudaMemcpy(scale, &two, sizeof(float), cudaMemcpyHostToDevice));
    auto y = torch::empty_like(x);
    cudaMemset(y.data_ptr(), 0, y.nbytes());
    launch_weigh(x.data_ptr<float>(), scale, y.data_ptr<float>(), x.numel());
    CUDA_OK(cudaGetLastError());
    cudaDeviceSynchronize();
    cudaFree(scale);
    return y;
}
