// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "`launch` does not take the output `y`"
__global__ void relu(float* x, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = fmaxf(x[i], 0.0f);
}

void launch(float* x, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, n);
}
