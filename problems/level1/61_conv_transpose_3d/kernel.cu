// Transposed 3D convolution in two steps, as libraries without a direct kernel do it:
// a GEMM makes the columns cols[(co, tap), p] = sum over ci of weight[ci, (co, tap)] *
// x[ci, p], and col2im sums, for every output, the columns that fall on it.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int TILE = 16;
static constexpr int THREADS = 256;

// The weight is [CI, CO * TAPS]: its rows run along the outputs, so the transposed
// operand is read without a strided access.
__global__ void columns_gemm(const float* __restrict__ weight, const float* __restrict__ x,
                             float* __restrict__ cols, int CI, int rows, int volume) {
    __shared__ float tile_w[TILE][TILE];
    __shared__ float tile_x[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int p = blockIdx.x * TILE + tx;
    const int row0 = blockIdx.y * TILE;

    float sum = 0.0f;
    for (int c0 = 0; c0 < CI; c0 += TILE) {
        const int ci = c0 + ty;
        tile_w[ty][tx] = (ci < CI && row0 + tx < rows) ? weight[ci * rows + row0 + tx] : 0.0f;
        tile_x[ty][tx] =
            (ci < CI && p < volume) ? x[static_cast<long long>(ci) * volume + p] : 0.0f;
        __syncthreads();
        #pragma unroll
        for (int c = 0; c < TILE; ++c) {
            sum += tile_w[c][ty] * tile_x[c][tx];
        }
        __syncthreads();
    }
    if (row0 + ty < rows && p < volume) {
        cols[static_cast<long long>(row0 + ty) * volume + p] = sum;
    }
}

__global__ void col2im(const float* __restrict__ cols, float* __restrict__ y, int S, int SO,
                       int outputs) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= outputs) {
        return;
    }
    const int wo = i % SO;
    const int ho = i / SO % SO;
    const int dz = i / (SO * SO) % SO;
    const int co = i / (SO * SO * SO);
    const int volume = S * S * S;

    float sum = 0.0f;
    for (int tap = 0; tap < TAPS; ++tap) {
        const int d = dz - tap / (K * K);
        const int h = ho - tap / K % K;
        const int w = wo - tap % K;
        if (d >= 0 && d < S && h >= 0 && h < S && w >= 0 && w < S) {
            sum += cols[static_cast<long long>(co * TAPS + tap) * volume + (d * S + h) * S + w];
        }
    }
    y[i] = sum;
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int S, int SO) {
    const int volume = S * S * S;
    const int rows = CO * TAPS;
    const int outputs = CO * SO * SO * SO;
    float* cols = scratch<float>(static_cast<long long>(rows) * volume);
    dim3 block(TILE, TILE);
    dim3 grid((volume + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    for (int n = 0; n < B; ++n) {
        const float* image = x + static_cast<long long>(n) * CI * volume;
        float* out = y + static_cast<long long>(n) * outputs;
        columns_gemm<<<grid, block>>>(weight, image, cols, CI, rows, volume);
        col2im<<<(outputs + THREADS - 1) / THREADS, THREADS>>>(cols, out, S, SO, outputs);
    }
}
