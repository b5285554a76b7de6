// C[M, N] = A[M, K] * B[K, N]: 16x16 tiles in shared memory, two columns per thread, fused bias.
#define TILE 16

__global__ void __launch_bounds__(TILE * TILE)
matmul_tiled(const float* __restrict__ A, const float* __restrict__ B, const float* __restrict__ bias,
             float* __restrict__ C, int M, int N, int K) {
    __shared__ float As[TILE][TILE + 1];
    __shared__ float Bs[TILE][2 * TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * (2 * TILE) + tx;

    float acc0 = 0.0f;
    float acc1 = 0.0f;
    const int tiles = (K + TILE - 1) / TILE;
    for (int t = 0; t < tiles; ++t) {
        const int ka = t * TILE + tx;
        const int kb = t * TILE + ty;
        As[ty][tx] = (row < M && ka < K) ? A[row * K + ka] : 0.0f;
        Bs[ty][tx] = (kb < K && col < N) ? B[kb * N + col] : 0.0f;
        Bs[ty][tx + TILE] = (kb < K && col + TILE < N) ? B[kb * N + col + TILE] : 0.0f;
        __syncthreads();

#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const float a = As[ty][k];
            acc0 += a * Bs[k][tx];
            acc1 += a * Bs[k][tx + TILE];
        }
        __syncthreads();
    }

    if (row < M && col < N) {
        C[row * N + col] = fmaxf(acc0 + bias[col], 0.0f);
    }
    if (row < M && col + TILE < N) {
        C[row * N + col + TILE] = fmaxf(acc1 + bias[col + TILE], 0.0f);
    }
}

void launch(const float* A, const float* B, const float* bias, float* C, int M, int N, int K) {
    dim3 block(TILE, TILE);
    dim3 grid((N + 2 * TILE - 1) / (2 * TILE), (M + TILE - 1) / TILE);
    matmul_tiled<<<grid, block>>>(A, B, bias, C, M, N, K);
}
