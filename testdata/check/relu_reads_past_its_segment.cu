// problem = "1/19"
// verdict = "crashed"
// exit = 1
// findings = ["oob_read"]
// The input fills its memory segment: behind it is nothing that a GPU could read.
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float ahead = ((volatile const float*)x)[i + 1];
    y[i] = ahead == 123456.0f ? 0.0f : fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, y, n);
}
