// problem = "1/19"
// verdict = "exhausted"
// exit = 5
// reason = "relu_host_endless.cu:"
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    int blocks = 1;
    while (blocks > 0) blocks ^= 2;
    relu<<<blocks, 256>>>(x, y, (long long)B * D);
}
