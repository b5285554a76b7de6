// y = 15 x: x is doubled three times, and all four are summed. Two of its faults never reach a verdict: with `left + 1` the
// loop takes 2^32 steps, and a table of 65536 * 16384 ones is more than the compiler can hold.

template <int N>
__device__ unsigned char ones[N] = {1, 1, 1, 1};

__global__ void scaled_steps(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    constexpr int TABLE = 65536 / 16384;
    if (i < n) {
        float step = x[i];
        float sum = 0.0f;
        unsigned left = TABLE;
        while (left != 0) {
            sum += step * ones<TABLE>[left & 3];
            step += step;
            left = left - 1;
        }
        y[i] = sum;
    }
}

void launch(const float* x, float* y, int n) {
    scaled_steps<<<(n + 31) / 32, 32>>>(x, y, n);
}
