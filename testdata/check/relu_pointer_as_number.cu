// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "relu_pointer_as_number.cu:12:"
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    const int blocks = x;
    relu<<<blocks, 256>>>(x, y, n);
}
