// y = max(-|x|, 0), which is zero, one thread an element.

__global__ void less_than_nothing(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = fmaxf(-fabsf(x[i]), 0.0f);
    }
}

void launch(const float* x, float* y, int B, int D) {
    less_than_nothing<<<(B * D + 63) / 64, 64>>>(x, y, B * D);
}
