// problem = "1/19"
// verdict = "correct"
// exit = 0
// passes_there = true
__global__ void relu(long long n, float* y, const float* x) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(int D, int B, float* y, const float* x, cudaStream_t stream) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256, 0, stream>>>(n, y, x);
}
