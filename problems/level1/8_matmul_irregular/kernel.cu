// C = A * B for extents that no tile divides: A is [M, K], B is [K, N].
//
// Double buffering: while a pair of tiles is multiplied, the next pair travels from global
// memory into registers, and then into the other shared buffer. One barrier per step.

static constexpr int TILE = 32;
static constexpr int TILE_K = 16;
static constexpr int SIDE = 16;
static constexpr int PER_THREAD = TILE / SIDE;

struct Fetched {
    float a[PER_THREAD];
    float b[PER_THREAD];
};

// A thread's share of the tiles from k0 on: two entries of each, zeros beyond the edges.
__device__ __forceinline__ Fetched fetch(const float* __restrict__ A, const float* __restrict__ B,
                                         int M, int K, int N, int row0, int col0, int k0) {
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    Fetched f;
    #pragma unroll
    for (int p = 0; p < PER_THREAD; ++p) {
        const int row = row0 + ty + p * SIDE;
        const int col = col0 + tx + p * SIDE;
        f.a[p] = (row < M && k0 + tx < K) ? A[row * K + k0 + tx] : 0.0f;
        f.b[p] = (k0 + ty < K && col < N) ? B[(k0 + ty) * N + col] : 0.0f;
    }
    return f;
}

__global__ void matmul_double_buffered(const float* __restrict__ A, const float* __restrict__ B,
                                       float* __restrict__ C, int M, int K, int N) {
    __shared__ float tile_a[2][TILE][TILE_K + 1];
    __shared__ float tile_b[2][TILE_K][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    float acc[PER_THREAD][PER_THREAD] = {{0.0f, 0.0f}, {0.0f, 0.0f}};

    Fetched next = fetch(A, B, M, K, N, row0, col0, 0);
    int buffer = 0;
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        #pragma unroll
        for (int p = 0; p < PER_THREAD; ++p) {
            tile_a[buffer][ty + p * SIDE][tx] = next.a[p];
            tile_b[buffer][ty][tx + p * SIDE] = next.b[p];
        }
        // Also keeps a fast warp from overwriting, a step later, what a slow one reads.
        __syncthreads();

        if (k0 + TILE_K < K) {
            next = fetch(A, B, M, K, N, row0, col0, k0 + TILE_K);
        }
        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float a0 = tile_a[buffer][ty][k];
            const float a1 = tile_a[buffer][ty + SIDE][k];
            const float b0 = tile_b[buffer][k][tx];
            const float b1 = tile_b[buffer][k][tx + SIDE];
            acc[0][0] += a0 * b0;
            acc[0][1] += a0 * b1;
            acc[1][0] += a1 * b0;
            acc[1][1] += a1 * b1;
        }
        buffer ^= 1;
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        #pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            const int row = row0 + ty + i * SIDE;
            const int col = col0 + tx + j * SIDE;
            if (row < M && col < N) {
                C[row * N + col] = acc[i][j];
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    dim3 block(SIDE, SIDE);
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    matmul_double_buffered<<<grid, block>>>(A, B, C, M, K, N);
}
