// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "has no host function `launch`; parameters go by name, in any order: `const float* x`, the output `y`, `int B`, `int D`"
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
