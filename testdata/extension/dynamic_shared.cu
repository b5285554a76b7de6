#define CHECK(x) TORCH_CHECK((x).is_contiguous() && (x).dim() == 2, #x " must be a contiguous matrix")
__global__ void row_sum_kernel(const float* x, float* y, int columns) {
    extern __shared__ float part[];
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += x[blockIdx.x * columns + c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
at::Tensor row_sum(at::Tensor x) {
    CHECK(x);
    const auto rows = x.size(0), columns = x.size(1);
    at::Tensor y = at::empty({rows}, x.options());
    const int threads = std::min<int>(64, 1 << (int)std::ceil(std::log2((float)columns)));
    cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    row_sum_kernel<<<dim3(rows), dim3(threads), threads * sizeof(float), stream>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), (int)columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
