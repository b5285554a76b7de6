// C = A * B: A is [N, M, K], B is [K, L]. All samples share B, so their rows are one long
// matrix of R = N * M rows.
//
// Blocks are numbered so that two row tiles go through all column tiles together before the
// next two begin: what they read of A and B stays in the cache meanwhile.

static constexpr int TILE = 32;
static constexpr int TILE_K = 16;
static constexpr int SIDE = 8;
static constexpr int PER_THREAD = TILE / SIDE;
static constexpr int GROUP = 2;

__global__ void matmul_grouped(const float* __restrict__ A, const float* __restrict__ B,
                               float* __restrict__ C, int R, int K, int L, int row_tiles,
                               int col_tiles) {
    __shared__ float tile_a[TILE][TILE_K + 1];
    __shared__ float tile_b[TILE_K][TILE];

    // The last group may have fewer row tiles.
    const int first_tile = blockIdx.x / (GROUP * col_tiles) * GROUP;
    const int in_group = min(GROUP, row_tiles - first_tile);
    const int number = blockIdx.x % (GROUP * col_tiles);
    const int row0 = (first_tile + number % in_group) * TILE;
    const int col0 = number / in_group * TILE;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * SIDE + tx;

    float acc[PER_THREAD][PER_THREAD] = {};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        for (int i = tid; i < TILE * TILE_K; i += SIDE * SIDE) {
            const int a_row = row0 + i / TILE_K;
            const int a_k = k0 + i % TILE_K;
            const int b_k = k0 + i / TILE;
            const int b_col = col0 + i % TILE;
            tile_a[i / TILE_K][i % TILE_K] = (a_row < R && a_k < K)
                ? A[static_cast<long long>(a_row) * K + a_k] : 0.0f;
            tile_b[i / TILE][i % TILE] = (b_k < K && b_col < L) ? B[b_k * L + b_col] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            float column[PER_THREAD];
            float row[PER_THREAD];
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                column[i] = tile_a[ty + i * SIDE][k];
                row[i] = tile_b[k][tx + i * SIDE];
            }
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                #pragma unroll
                for (int j = 0; j < PER_THREAD; ++j) {
                    acc[i][j] += column[i] * row[j];
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        #pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
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
    const int row_tiles = (R + TILE - 1) / TILE;
    const int col_tiles = (L + TILE - 1) / TILE;
    dim3 block(SIDE, SIDE);
    matmul_grouped<<<row_tiles * col_tiles, block>>>(A, B, C, R, K, L, row_tiles, col_tiles);
}
