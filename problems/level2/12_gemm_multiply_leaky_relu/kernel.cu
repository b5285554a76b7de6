// y = leaky_relu((x * weight^T + bias) * multiplier) in one kernel.
//
// x is [B, K], weight [N, K], both with K contiguous. A block of 8x8 threads makes a
// 16x16 tile, 2x2 outputs a thread; tiles are staged transposed, so that the inner loop
// reads a thread's two rows and two columns from neighbouring addresses. Bias,
// multiplier and activation are applied in registers before the only store.

static constexpr int BM = 16;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int TM = 2;
static constexpr int TN = 2;
static constexpr int THREADS_X = BN / TN;
static constexpr int THREADS_Y = BM / TM;
static constexpr int THREADS = THREADS_X * THREADS_Y;
// A thread stages one k of every ROW_STEP-th row.
static constexpr int ROW_STEP = THREADS / BK;
// Spreads the transposed stores over the banks and keeps pairs of floats aligned.
static constexpr int PAD = 2;

__device__ __forceinline__ float epilogue(float acc, float bias, float multiplier, float slope) {
    const float v = (acc + bias) * multiplier;
    return v > 0.0f ? v : v * slope;
}

__global__ void gemm_multiply_leaky_relu(const float* __restrict__ x,
                                         const float* __restrict__ weight,
                                         const float* __restrict__ bias, float* __restrict__ y,
                                         int B, int N, int K, float multiplier,
                                         float negative_slope) {
    __shared__ float tile_x[BK][BM + PAD];
    __shared__ float tile_w[BK][BN + PAD];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * THREADS_X + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    // Neighbouring threads take neighbouring k: the global loads are coalesced.
    const int stage_k = tid % BK;
    const int stage_row = tid / BK;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + stage_k;
        #pragma unroll
        for (int r = 0; r < BM; r += ROW_STEP) {
            const int m = r + stage_row;
            tile_x[stage_k][m] = (row0 + m < B && k < K) ? x_tile[m * K + k] : 0.0f;
        }
        #pragma unroll
        for (int r = 0; r < BN; r += ROW_STEP) {
            const int n = r + stage_row;
            tile_w[stage_k][n] = (col0 + n < N && k < K) ? w_tile[n * K + k] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int kk = 0; kk < BK; ++kk) {
            float a[TM];
            float b[TN];
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                a[i] = tile_x[kk][ty * TM + i];
            }
            #pragma unroll
            for (int j = 0; j < TN; ++j) {
                b[j] = tile_w[kk][tx * TN + j];
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
        const int row = row0 + ty * TM + i;
        #pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int col = col0 + tx * TN + j;
            if (row < B && col < N) {
                y[static_cast<long long>(row) * N + col] =
                    epilogue(acc[i][j], bias[col], multiplier, negative_slope);
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N, float multiplier, float negative_slope) {
    dim3 block(THREADS_X, THREADS_Y);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_multiply_leaky_relu<<<grid, block>>>(x, weight, bias, y, B, N, K,
                                              multiplier, negative_slope);
}
