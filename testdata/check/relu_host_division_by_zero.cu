// problem = "1/19"
// verdict = "crashed"
// exit = 1
// reason = "division by zero"
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    const int per_block = D / 1000000;
    relu<<<n / per_block, 256>>>(x, y, n);
}
