// C = A * B for upper triangular A and B; C is upper triangular too.
//
// A tile below the diagonal is zero and written at once. For the others only terms between
// the tile's first row and its last column count: A has none before, B none after.

static constexpr int TILE = 32;
static constexpr int SIDE = 16;
static constexpr int PER_THREAD = TILE / SIDE;

__device__ __forceinline__ float upper(const float* __restrict__ matrix, int row, int col, int N) {
    return (row <= col && col < N) ? matrix[row * N + col] : 0.0f;
}

__global__ void upper_matmul(const float* __restrict__ A, const float* __restrict__ B,
                             float* __restrict__ C, int N) {
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    float acc[PER_THREAD][PER_THREAD] = {{0.0f, 0.0f}, {0.0f, 0.0f}};

    // No round at all for a tile below the diagonal.
    for (int k0 = row0; k0 <= col0; k0 += TILE) {
        for (int i = ty; i < TILE; i += SIDE) {
            for (int j = tx; j < TILE; j += SIDE) {
                tile_a[i][j] = upper(A, row0 + i, k0 + j, N);
                tile_b[i][j] = upper(B, k0 + i, col0 + j, N);
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
    upper_matmul<<<dim3(tiles, tiles), dim3(SIDE, SIDE)>>>(A, B, C, N);
}
