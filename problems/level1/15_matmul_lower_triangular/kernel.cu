// C = A * B for lower triangular A and B; C is lower triangular too.
//
// Only tiles on and below the diagonal get a block; the rest of C is cleared beforehand. The
// triangle of tiles is folded into a rectangular grid: a row of tiles and the one as far
// from the other end have tiles + 1 tiles together. A tile sums over the terms between its
// first column and last row.

static constexpr int TILE = 16;

__global__ void lower_matmul(const float* __restrict__ A, const float* __restrict__ B,
                             float* __restrict__ C, int N, int tiles) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];

    const int short_row = blockIdx.y;
    const int long_row = tiles - 1 - short_row;
    const int col_block = blockIdx.x;
    const bool in_long = col_block <= long_row;
    // The middle one of an odd number of rows has no partner.
    if (!in_long && short_row == long_row) {
        return;
    }
    const int tile_row = in_long ? long_row : short_row;
    const int tile_col = in_long ? col_block : col_block - long_row - 1;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = tile_row * TILE + ty;
    const int col = tile_col * TILE + tx;

    float acc = 0.0f;
    for (int tile = tile_col; tile <= tile_row; ++tile) {
        const int a_col = tile * TILE + tx;
        const int b_row = tile * TILE + ty;
        tile_a[ty][tx] = (row < N && a_col <= row) ? A[row * N + a_col] : 0.0f;
        tile_b[ty][tx] = (b_row < N && col <= b_row) ? B[b_row * N + col] : 0.0f;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < TILE; ++k) {
            acc += tile_a[ty][k] * tile_b[k][tx];
        }
        __syncthreads();
    }

    // On the diagonal the masked loads leave a sum of zeros above it.
    if (row < N && col < N) {
        C[row * N + col] = acc;
    }
}

void launch(const float* A, const float* B, float* C, int N) {
    const int tiles = (N + TILE - 1) / TILE;
    cudaMemset(C, 0, sizeof(float) * N * N);
    dim3 grid(tiles + 1, (tiles + 1) / 2);
    lower_matmul<<<grid, dim3(TILE, TILE)>>>(A, B, C, N, tiles);
}
