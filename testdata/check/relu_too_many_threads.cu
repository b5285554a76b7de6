// problem = "1/19"
// verdict = "crashed"
// exit = 1
// findings = ["invalid_launch"]
// reason = "2048"
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<(n + 2047) / 2048, 2048>>>(x, y, n);
}
