// C = A * B: A is [N, M, K], B is [K, L]. All samples share B, so their rows are one long
// matrix of R = N * M rows.
//
// Blocks are numbered so that two row tiles go through all column tiles together before the
// next two begin: what they read of A and B stays in the cache meanwhile.

static constexpr int TILE_R = 16;
static constexpr int TILE_L = 32;
static constexpr int TILE_K = 8;
static constexpr int SIDE = 8;
static constexpr int THREADS = SIDE * SIDE;
static constexpr int ROWS = TILE_R / SIDE;
static constexpr int COLS = TILE_L / SIDE;
static constexpr int GROUP = 2;

__global__ void matmul_grouped(const float* __restrict__ A, const float* __restrict__ B,
                               float* __restrict__ C, int R, int K, int L, int row_tiles,
                               int col_tiles) {
    __shared__ float tile_a[TILE_R][TILE_K + 1];
    __shared__ float tile_b[TILE_K][TILE_L];

    // The last group may have fewer row tiles.
    const int first_tile = blockIdx.x / (GROUP * col_tiles) * GROUP;
    const int in_group = min(GROUP, row_tiles - first_tile);
    const int number = blockIdx.x % (GROUP * col_tiles);
    const int row0 = (first_tile + number % in_group) * TILE_R;
    const int col0 = number / in_group * TILE_L;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * SIDE + tx;

    float acc[ROWS][COLS] = {};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        for (int i = tid; i < TILE_R * TILE_K; i += THREADS) {
            const int r = row0 + i / TILE_K;
            const int k = k0 + i % TILE_K;
            tile_a[i / TILE_K][i % TILE_K] =
                (r < R && k < K) ? A[static_cast<long long>(r) * K + k] : 0.0f;
        }
        for (int i = tid; i < TILE_K * TILE_L; i += THREADS) {
            const int k = k0 + i / TILE_L;
            const int l = col0 + i % TILE_L;
            tile_b[i / TILE_L][i % TILE_L] = (k < K && l < L) ? B[k * L + l] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            float row[COLS];
            #pragma unroll
            for (int j = 0; j < COLS; ++j) {
                row[j] = tile_b[k][tx + j * SIDE];
            }
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const float a = tile_a[ty + i * SIDE][k];
                #pragma unroll
                for (int j = 0; j < COLS; ++j) {
                    acc[i][j] += a * row[j];
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        #pragma unroll
        for (int j = 0; j < COLS; ++j) {
            const int r = row0 + ty + i * SIDE;
            const int l = col0 + tx + j * SIDE;
            if (r < R && l < L) {
                C[static_cast<long long>(r) * L + l] = acc[i][j];
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int N, int M, int K, int L) {
    const int R = N * M;
    const int row_tiles = (R + TILE_R - 1) / TILE_R;
    const int col_tiles = (L + TILE_L - 1) / TILE_L;
    dim3 block(SIDE, SIDE);
    matmul_grouped<<<row_tiles * col_tiles, block>>>(A, B, C, R, K, L, row_tiles, col_tiles);
}
