// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "parameter `slope` of `launch` is not bound: no scalar has that name"
__global__ void relu(const float* x, float* y, long long n, float slope) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : slope * x[i];
}

void launch(const float* x, float* y, int B, int D, float slope) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, y, n, slope);
}
