// y = relu(x * weight^T + bias) / divisor in one kernel.
//
// A fixed number of blocks works through the list of 16x16 tiles. Shared memory has no
// padding: the column of an element is XORed with its row instead, so that both a row and
// a column of a tile fall on different banks.

static constexpr int TILE = 16;
static constexpr int BK = 32;
static constexpr int SIDE = 8;
static constexpr int THREADS = SIDE * SIDE;
static constexpr int BLOCKS = 8;

__device__ __forceinline__ int swizzled(int row, int k) {
    return row * BK + (k ^ (row & (BK - 1)));
}

__global__ void gemm_persistent(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int B,
                                int K, int N, int tiles_n, int tiles, float divisor) {
    __shared__ float tile_x[TILE * BK];
    __shared__ float tile_w[TILE * BK];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * SIDE + tx;

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int row0 = tile / tiles_n * TILE;
        const int col0 = tile % tiles_n * TILE;

        float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        for (int k0 = 0; k0 < K; k0 += BK) {
            #pragma unroll
            for (int i = tid; i < TILE * BK; i += THREADS) {
                const int r = i / BK;
                const int k = i % BK;
                const bool in_x = row0 + r < B && k0 + k < K;
                const bool in_w = col0 + r < N && k0 + k < K;
                tile_x[swizzled(r, k)] =
                    in_x ? x[static_cast<long long>(row0 + r) * K + k0 + k] : 0.0f;
                tile_w[swizzled(r, k)] =
                    in_w ? weight[static_cast<long long>(col0 + r) * K + k0 + k] : 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                const float a0 = tile_x[swizzled(ty, k)];
                const float a1 = tile_x[swizzled(ty + SIDE, k)];
                const float b0 = tile_w[swizzled(tx, k)];
                const float b1 = tile_w[swizzled(tx + SIDE, k)];
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
                const int row = row0 + ty + i * SIDE;
                const int col = col0 + tx + j * SIDE;
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
    const int tiles_n = (N + TILE - 1) / TILE;
    const int tiles = tiles_n * ((B + TILE - 1) / TILE);
    dim3 block(SIDE, SIDE);
    gemm_persistent<<<min(tiles, BLOCKS), block>>>(x, weight, bias, y, B, K, N, tiles_n, tiles,
                                                   divisor);
}
