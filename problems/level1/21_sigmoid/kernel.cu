// y = 1 / (1 + exp(-x)). The grid's y axis walks the rows, its x axis the columns of a
// row; a thread makes four elements, one block width apart, so every access is coalesced.

static constexpr int THREADS = 256;
static constexpr int ITEMS = 4;
static constexpr int COLS = THREADS * ITEMS;

__device__ __forceinline__ float sigmoid(float v) {
    // For very negative v the exponential is infinite and the quotient zero, as it should be.
    return 1.0f / (1.0f + expf(-v));
}

__global__ void sigmoid_rows(const float* __restrict__ x, float* __restrict__ y, int D) {
    const long long row = static_cast<long long>(blockIdx.y) * D;
    const int col0 = blockIdx.x * COLS + threadIdx.x;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int col = col0 + i * THREADS;
        if (col < D) {
            y[row + col] = sigmoid(x[row + col]);
        }
    }
}

void launch(const float* x, float* y, int B, int D) {
    dim3 grid((D + COLS - 1) / COLS, B);
    sigmoid_rows<<<grid, THREADS>>>(x, y, D);
}
