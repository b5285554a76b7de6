// C = A * B for square row-major matrices.
//
// A block of 16x16 threads makes one 32x32 tile of C; every thread keeps a 2x2
// corner of it in registers, so one pass over the shared tiles feeds four sums.

static constexpr int TILE = 32;
static constexpr int PER_THREAD = 2;
static constexpr int SIDE = TILE / PER_THREAD;

__global__ void matmul_tiled(const float* __restrict__ A, const float* __restrict__ B,
                             float* __restrict__ C, int N) {
    // One padding column keeps a column of A's tile off a single bank.
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][TILE + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    float acc[PER_THREAD][PER_THREAD] = {{0.0f, 0.0f}, {0.0f, 0.0f}};

    for (int k0 = 0; k0 < N; k0 += TILE) {
        for (int i = ty; i < TILE; i += SIDE) {
            for (int j = tx; j < TILE; j += SIDE) {
                const int row = row0 + i;
                const int col = col0 + j;
                // Zeros beyond the edge add nothing, so the sums need no guard.
                tile_a[i][j] = (row < N && k0 + j < N) ? A[row * N + k0 + j] : 0.0f;
                tile_b[i][j] = (k0 + i < N && col < N) ? B[(k0 + i) * N + col] : 0.0f;
            }
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const float a0 = tile_a[ty][k];
            const float a1 = tile_a[ty + SIDE][k];
            const float b0 = tile_b[k][tx];
            const float b1 = tile_b[k][tx + SIDE];
            acc[0][0] += a0 * b0;
            acc[0][1] += a0 * b1;
            acc[1][0] += a1 * b0;
            acc[1][1] += a1 * b1;
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        #pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            const int row = row0 + ty + i * SIDE;
            const int col = col0 + tx + j * SIDE;
            if (row < N && col < N) {
                C[row * N + col] = acc[i][j];
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int N) {
    const int tiles = (N + TILE - 1) / TILE;
    dim3 grid(tiles, tiles);
    dim3 block(SIDE, SIDE);
    matmul_tiled<<<grid, block>>>(A, B, C, N);
}
