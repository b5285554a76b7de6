// C = A * B for lower triangular A and B; C is lower triangular too.
//
// The grid numbers only the tiles on and below the diagonal, row by row; the rest of C is
// cleared beforehand. A tile sums over the terms between its first column and last row.

static constexpr int TILE = 16;

__global__ void lower_matmul(const float* __restrict__ A, const float* __restrict__ B,
                             float* __restrict__ C, int N) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];

    // Tile t stands in the last row r whose first tile, r (r + 1) / 2, is not beyond t.
    const int t = blockIdx.x;
    int tile_row = static_cast<int>((sqrtf(8.0f * t + 1.0f) - 1.0f) * 0.5f);
    // The root may be rounded to either side.
    while (tile_row * (tile_row + 1) / 2 > t) {
        --tile_row;
    }
    while ((tile_row + 1) * (tile_row + 2) / 2 <= t) {
        ++tile_row;
    }
    const int tile_col = t - tile_row * (tile_row + 1) / 2;

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
    lower_matmul<<<tiles * (tiles + 1) / 2, dim3(TILE, TILE)>>>(A, B, C, N);
}
