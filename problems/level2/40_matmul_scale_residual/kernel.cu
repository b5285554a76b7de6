// h = x * weight^T + bias; y = scaling * h + h.
//
// Blocks are numbered so that neighbours in time share operands: four rows of blocks form
// a band, and the number runs down a band's column before it moves to the next column.
// The weights of a column of blocks then serve four blocks from the cache.

static constexpr int BM = 8;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int TM = 2;
static constexpr int TN = 2;
static constexpr int TX = BN / TN;
static constexpr int TY = BM / TM;
static constexpr int THREADS = TX * TY;
static constexpr int BAND = 4;

__global__ void gemm_residual(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int B, int K,
                              int N, int tiles_m, int tiles_n, float scaling_factor) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];

    const int per_band = BAND * tiles_n;
    const int band = blockIdx.x / per_band;
    // The last band may have fewer rows of blocks.
    const int band_rows = min(BAND, tiles_m - band * BAND);
    const int within = blockIdx.x % per_band;
    const int row0 = (band * BAND + within % band_rows) * BM;
    const int col0 = within / band_rows * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int r = tid / BK; r < BM; r += THREADS / BK) {
            tile_x[r][tid % BK] = (row0 + r < B && k < K) ? x_tile[r * K + k] : 0.0f;
        }
        #pragma unroll
        for (int r = tid / BK; r < BN; r += THREADS / BK) {
            tile_w[r][tid % BK] = (col0 + r < N && k < K) ? w_tile[r * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            float b[TN];
            #pragma unroll
            for (int j = 0; j < TN; ++j) {
                b[j] = tile_w[tx + j * TX][i];
            }
            #pragma unroll
            for (int m = 0; m < TM; ++m) {
                const float a = tile_x[ty + m * TY][i];
                #pragma unroll
                for (int j = 0; j < TN; ++j) {
                    acc[m][j] += a * b[j];
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + ty + i * TY;
        #pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int col = col0 + tx + j * TX;
            if (row < B && col < N) {
                const float h = acc[i][j] + bias[col];
                y[static_cast<long long>(row) * N + col] = h * scaling_factor + h;
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scaling_factor) {
    const int tiles_m = (B + BM - 1) / BM;
    const int tiles_n = (N + BN - 1) / BN;
    dim3 block(TX, TY);
    gemm_residual<<<tiles_m * tiles_n, block>>>(x, weight, bias, y, B, K, N, tiles_m, tiles_n,
                                                scaling_factor);
}
