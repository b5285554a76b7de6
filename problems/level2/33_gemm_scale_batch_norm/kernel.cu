// h = (x * weight^T + bias) * scale; y = batch norm of h over the rows, training mode.
//
// Three kernels: the GEMM with its epilogue, mean and inverse deviation of every column,
// and the normalisation. The statistics take two passes over a column, the second on
// centred values.

static constexpr int BM = 16;
static constexpr int BN = 8;
static constexpr int BK = 32;
static constexpr int TM = 2;
static constexpr int TN = 2;
static constexpr int TX = BN / TN;
static constexpr int TY = BM / TM;
static constexpr int THREADS = TX * TY;
static constexpr int STAT_COLS = 16;
static constexpr int STAT_ROWS = 8;

__global__ void gemm_scale(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, const float* __restrict__ scale,
                           float* __restrict__ h, int B, int K, int N) {
    // k runs along the rows of a tile: the inner loop reads neighbours.
    __shared__ float tile_x[BK][BM + 1];
    __shared__ float tile_w[BK][BN + 1];

    const int tid = threadIdx.y * TX + threadIdx.x;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        #pragma unroll
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int r = i / BK;
            const int k = i % BK;
            const bool exists = row0 + r < B && k0 + k < K;
            tile_x[k][r] = exists ? x_tile[r * K + k0 + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid; i < BN * BK; i += THREADS) {
            const int c = i / BK;
            const int k = i % BK;
            const bool exists = col0 + c < N && k0 + k < K;
            tile_w[k][c] = exists ? w_tile[c * K + k0 + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM];
            float b[TN];
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                a[i] = tile_x[k][threadIdx.y * TM + i];
            }
            #pragma unroll
            for (int j = 0; j < TN; ++j) {
                b[j] = tile_w[k][threadIdx.x * TN + j];
            }
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                #pragma unroll
                for (int j = 0; j < TN; ++j) {
                    acc[i][j] += a[i] * b[j];
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + threadIdx.y * TM + i;
        #pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int col = col0 + threadIdx.x * TN + j;
            if (row < B && col < N) {
                h[static_cast<long long>(row) * N + col] = (acc[i][j] + bias[col]) * scale[col];
            }
        }
    }
}

// Sums a column over the rows of threads; the result is in sums[0].
__device__ __forceinline__ void sum_rows(float (*sums)[STAT_COLS], float v) {
    sums[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    #pragma unroll
    for (int half = STAT_ROWS / 2; half > 0; half /= 2) {
        if (threadIdx.y < half) {
            sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
        }
        __syncthreads();
    }
}

__global__ void column_statistics(const float* __restrict__ h, float* __restrict__ mean,
                                  float* __restrict__ inv_std, int B, int N, float eps) {
    __shared__ float sums[STAT_ROWS][STAT_COLS];
    const int col = blockIdx.x * STAT_COLS + threadIdx.x;
    const bool exists = col < N;

    float sum = 0.0f;
    for (int row = threadIdx.y; exists && row < B; row += STAT_ROWS) {
        sum += h[static_cast<long long>(row) * N + col];
    }
    sum_rows(sums, sum);
    const float average = sums[0][threadIdx.x] / B;
    // The second pass overwrites the sums.
    __syncthreads();

    float squares = 0.0f;
    for (int row = threadIdx.y; exists && row < B; row += STAT_ROWS) {
        const float d = h[static_cast<long long>(row) * N + col] - average;
        squares += d * d;
    }
    sum_rows(sums, squares);
    if (exists && threadIdx.y == 0) {
        mean[col] = average;
        inv_std[col] = rsqrtf(sums[0][threadIdx.x] / B + eps);
    }
}

__global__ void normalise(const float* __restrict__ h, const float* __restrict__ mean,
                          const float* __restrict__ inv_std, const float* __restrict__ gamma,
                          const float* __restrict__ beta, float* __restrict__ y, int B, int N) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < static_cast<long long>(B) * N) {
        const int col = i % N;
        y[i] = (h[i] - mean[col]) * inv_std[col] * gamma[col] + beta[col];
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* scale,
            const float* gamma, const float* beta, float* y, int B, int K, int N, float eps) {
    const long long n = static_cast<long long>(B) * N;
    float* h = scratch<float>(n);
    float* mean = scratch<float>(N);
    float* inv_std = scratch<float>(N);

    dim3 block(TX, TY);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_scale<<<grid, block>>>(x, weight, bias, scale, h, B, K, N);
    dim3 stat_block(STAT_COLS, STAT_ROWS);
    column_statistics<<<(N + STAT_COLS - 1) / STAT_COLS, stat_block>>>(h, mean, inv_std, B, N,
                                                                      eps);
    normalise<<<(n + THREADS - 1) / THREADS, THREADS>>>(h, mean, inv_std, gamma, beta, y, B, N);
}
