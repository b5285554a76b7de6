// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "the launch of `relu` passes 2 arguments, the kernel has 3 parameters"
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, y);
}
