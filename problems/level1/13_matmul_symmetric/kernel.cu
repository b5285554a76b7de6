// C = A * B for symmetric A and B, of which only the upper triangles are read.
//
// An entry below the diagonal is fetched from its mirror image while the tiles are staged;
// a block makes 32x32 entries, each of its 8 rows of threads four of a column.

static constexpr int TILE = 32;
static constexpr int ROWS = 8;
static constexpr int PER_THREAD = TILE / ROWS;

__device__ __forceinline__ float symmetric(const float* __restrict__ matrix, int i, int j, int N) {
    if (i >= N || j >= N) {
        return 0.0f;
    }
    const int row = min(i, j);
    const int col = max(i, j);
    return matrix[row * N + col];
}

__global__ void symmetric_matmul(const float* __restrict__ A, const float* __restrict__ B,
                                 float* __restrict__ C, int N) {
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][TILE + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col = blockIdx.x * TILE + tx;

    float acc[PER_THREAD] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (int k0 = 0; k0 < N; k0 += TILE) {
        for (int i = ty; i < TILE; i += ROWS) {
            tile_a[i][tx] = symmetric(A, row0 + i, k0 + tx, N);
            tile_b[i][tx] = symmetric(B, k0 + i, col, N);
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const float b = tile_b[k][tx];
            #pragma unroll
            for (int p = 0; p < PER_THREAD; ++p) {
                acc[p] += tile_a[ty + p * ROWS][k] * b;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int p = 0; p < PER_THREAD; ++p) {
        const int row = row0 + ty + p * ROWS;
        if (row < N && col < N) {
            C[row * N + col] = acc[p];
        }
    }
}

void launch(const float* A, const float* B, float* C, int N) {
    const int tiles = (N + TILE - 1) / TILE;
    symmetric_matmul<<<dim3(tiles, tiles), dim3(TILE, ROWS)>>>(A, B, C, N);
}
