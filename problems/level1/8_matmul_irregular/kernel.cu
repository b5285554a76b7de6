// C = A * B for extents that no tile divides: A is [M, K], B is [K, N].
//
// Double buffering: while a pair of tiles is multiplied, the next pair travels from global
// memory into registers, and then into the other shared buffer. One barrier per step.

static constexpr int TILE = 32;
static constexpr int TILE_K = 8;
static constexpr int SIDE = 16;
static constexpr int PER_THREAD = TILE / SIDE;

__global__ void matmul_double_buffered(const float* __restrict__ A, const float* __restrict__ B,
                                       float* __restrict__ C, int M, int K, int N) {
    __shared__ float tile_a[2][TILE][TILE_K + 1];
    __shared__ float tile_b[2][TILE_K][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * SIDE + tx;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    // Both tiles have 256 entries: each thread moves one of either.
    const int a_row = tid / TILE_K;
    const int a_k = tid % TILE_K;
    const int b_k = tid / TILE;
    const int b_col = tid % TILE;
    const float* a_source = A + (row0 + a_row) * K + a_k;
    const float* b_source = B + b_k * N + col0 + b_col;
    const bool row_exists = row0 + a_row < M;
    const bool col_exists = col0 + b_col < N;

    float acc[PER_THREAD][PER_THREAD] = {{0.0f, 0.0f}, {0.0f, 0.0f}};

    float next_a = row_exists && a_k < K ? a_source[0] : 0.0f;
    float next_b = col_exists && b_k < K ? b_source[0] : 0.0f;
    int buffer = 0;
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        tile_a[buffer][a_row][a_k] = next_a;
        tile_b[buffer][b_k][b_col] = next_b;
        // Also keeps a fast warp from overwriting, a step later, what a slow one reads.
        __syncthreads();

        const int k1 = k0 + TILE_K;
        next_a = row_exists && k1 + a_k < K ? a_source[k1] : 0.0f;
        next_b = col_exists && k1 + b_k < K ? b_source[k1 * N] : 0.0f;

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
