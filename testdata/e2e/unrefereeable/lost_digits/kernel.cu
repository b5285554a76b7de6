// y = exp((x + 1e6) - 1e6), one thread an element.

__global__ void lost_digits(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float h = x[i] + 1000000.0f;
        y[i] = expf(h - 1000000.0f);
    }
}

void launch(const float* x, float* y, int B, int D) {
    lost_digits<<<(B * D + 63) / 64, 64>>>(x, y, B * D);
}
