// h = (x * weight^T + bias) * scale; y = batch norm of h over the rows, training mode.
//
// The weight is transposed first, so that threads of a warp, one output column each, read
// it side by side; eight rows of x are broadcast from shared memory. A second kernel runs
// Welford down each column and folds mean, deviation, gamma and beta into y = a * h + b
// around the mean.

static constexpr int TILE = 32;
static constexpr int TILE_ROWS = 8;
static constexpr int THREADS = 32;
static constexpr int ROWS = 8;
static constexpr int BK = 32;

__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int rows,
                          int cols) {
    __shared__ float tile[TILE][TILE + 1];
    const int col = blockIdx.x * TILE + threadIdx.x;
    const int row0 = blockIdx.y * TILE;
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS) {
        if (row0 + i < rows && col < cols) {
            tile[i][threadIdx.x] = in[static_cast<long long>(row0 + i) * cols + col];
        }
    }
    __syncthreads();
    const int out_col = row0 + threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS) {
        const int out_row = blockIdx.x * TILE + i;
        if (out_row < cols && out_col < rows) {
            out[static_cast<long long>(out_row) * rows + out_col] = tile[threadIdx.x][i];
        }
    }
}

__global__ void gemm_columns(const float* __restrict__ x, const float* __restrict__ weight_t,
                             const float* __restrict__ bias, const float* __restrict__ scale,
                             float* __restrict__ h, int B, int K, int N) {
    __shared__ float rows[BK][ROWS];
    const int tid = threadIdx.x;
    const int col = blockIdx.x * THREADS + tid;
    const int row0 = blockIdx.y * ROWS;

    float acc[ROWS] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const bool exists = row0 + r < B && k0 + tid < K;
            rows[tid][r] = exists ? x[static_cast<long long>(row0 + r) * K + k0 + tid] : 0.0f;
        }
        __syncthreads();
        if (col < N) {
            const int terms = min(BK, K - k0);
            for (int k = 0; k < terms; ++k) {
                const float w = weight_t[static_cast<long long>(k0 + k) * N + col];
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    acc[r] += rows[k][r] * w;
                }
            }
        }
        __syncthreads();
    }
    if (col < N) {
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (row0 + r < B) {
                h[static_cast<long long>(row0 + r) * N + col] = (acc[r] + bias[col]) * scale[col];
            }
        }
    }
}

__global__ void batch_norm_columns(const float* __restrict__ h, const float* __restrict__ gamma,
                                   const float* __restrict__ beta, float* __restrict__ y, int B,
                                   int N, float eps) {
    const int col = blockIdx.x * THREADS + threadIdx.x;
    if (col >= N) {
        return;
    }
    float mean = 0.0f;
    float m2 = 0.0f;
    for (int row = 0; row < B; ++row) {
        const float v = h[static_cast<long long>(row) * N + col];
        const float delta = v - mean;
        mean += delta / (row + 1);
        m2 += delta * (v - mean);
    }
    const float slope = gamma[col] * rsqrtf(m2 / B + eps);
    const float level = beta[col];
    for (int row = 0; row < B; ++row) {
        const long long i = static_cast<long long>(row) * N + col;
        y[i] = (h[i] - mean) * slope + level;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* scale,
            const float* gamma, const float* beta, float* y, int B, int K, int N, float eps) {
    float* weight_t = scratch<float>(static_cast<long long>(N) * K);
    float* h = scratch<float>(static_cast<long long>(B) * N);

    dim3 tile_block(TILE, TILE_ROWS);
    dim3 tile_grid((K + TILE - 1) / TILE, (N + TILE - 1) / TILE);
    transpose<<<tile_grid, tile_block>>>(weight, weight_t, N, K);

    const int col_blocks = (N + THREADS - 1) / THREADS;
    dim3 grid(col_blocks, (B + ROWS - 1) / ROWS);
    gemm_columns<<<grid, THREADS>>>(x, weight_t, bias, scale, h, B, K, N);
    batch_norm_columns<<<col_blocks, THREADS>>>(h, gamma, beta, y, B, N, eps);
}
