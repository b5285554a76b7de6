// problem = "1/19"
// verdict = "undefined_behaviour"
// exit = 1
// passes_there = true
// findings = ["uninit_read_shared"]
__global__ void relu(const float* x, float* y, long long n) {
    __shared__ float bias[256];
    if (threadIdx.x < 128) bias[threadIdx.x] = 0.0f;
    __syncthreads();
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = bias[threadIdx.x] > 1000.0f ? 0.0f : fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, y, n);
}
