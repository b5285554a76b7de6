// y = relu(x * weight^T + bias) / divisor in one kernel.
//
// A fixed number of blocks works through the list of 8x16 tiles. Shared memory has no
// padding: the column of an element is XORed with its row instead, so that both a row and
// a column of a tile fall on different banks.

static constexpr int BM = 8;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;
static constexpr int BLOCKS = 8;

__device__ __forceinline__ int swizzled(int row, int k) {
    return row * BK + (k ^ (row & (BK - 1)));
}

__global__ void gemm_persistent(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int B,
                                int K, int N, int tiles_n, int tiles, float divisor) {
    __shared__ float tile_x[BM * BK];
    __shared__ float tile_w[BN * BK];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int row0 = tile / tiles_n * BM;
        const int col0 = tile % tiles_n * BN;
        const float* x_tile = x + static_cast<long long>(row0) * K;
        const float* w_tile = weight + static_cast<long long>(col0) * K;

        float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        for (int k0 = 0; k0 < K; k0 += BK) {
            const int k = k0 + tid % BK;
            #pragma unroll
            for (int r = tid / BK; r < BM; r += THREADS / BK) {
                tile_x[swizzled(r, tid % BK)] =
                    (row0 + r < B && k < K) ? x_tile[r * K + k] : 0.0f;
            }
            #pragma unroll
            for (int r = tid / BK; r < BN; r += THREADS / BK) {
                tile_w[swizzled(r, tid % BK)] =
                    (col0 + r < N && k < K) ? w_tile[r * K + k] : 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < BK; ++i) {
                const float a0 = tile_x[swizzled(ty, i)];
                const float a1 = tile_x[swizzled(ty + TY, i)];
                const float b0 = tile_w[swizzled(tx, i)];
                const float b1 = tile_w[swizzled(tx + TX, i)];
                acc[0][0] += a0 * b0;
                acc[0][1] += a0 * b1;
                acc[1][0] += a1 * b0;
                acc[1][1] += a1 * b1;
            }
            __syncthreads();
        }

        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            #pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int row = row0 + ty + i * TY;
                const int col = col0 + tx + j * TX;
                if (row < B && col < N) {
                    y[static_cast<long long>(row) * N + col] =
                        fmaxf(acc[i][j] + bias[col], 0.0f) / divisor;
                }
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float divisor) {
    const int tiles_n = (N + BN - 1) / BN;
    const int tiles = tiles_n * ((B + BM - 1) / BM);
    dim3 block(TX, TY);
    gemm_persistent<<<min(tiles, BLOCKS), block>>>(x, weight, bias, y, B, K, N, tiles_n, tiles,
                                                   divisor);
}
