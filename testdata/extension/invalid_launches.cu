__global__ void none_kernel(float* x) { extern __shared__ float s[]; s[threadIdx.x] = x[0]; }
void grid(torch::Tensor x) { none_kernel<<<x.numel() / 100, 32>>>(x.data_ptr<float>()); }
void shared(torch::Tensor x) { none_kernel<<<1, 32, 100000>>>(x.data_ptr<float>()); }
void allowed(torch::Tensor x) {
    cudaFuncSetAttribute(none_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
    none_kernel<<<1, 32, 100000>>>(x.data_ptr<float>());
}
