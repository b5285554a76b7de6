// C = A^T * B^T: A is [K, M], B is [N, K].
//
// That is (B * A)^T, an ordinary product whose result is transposed: a block makes 32x16
// entries of B * A and stores them through shared memory, so that loads and stores both
// run along rows.

static constexpr int TILE_N = 32;
static constexpr int TILE_M = 16;
static constexpr int TILE_K = 16;
static constexpr int THREADS = 64;
static constexpr int THREADS_X = 8;

__global__ void matmul_transposed_product(const float* __restrict__ A,
                                          const float* __restrict__ B, float* __restrict__ C,
                                          int M, int K, int N) {
    // Padding spreads the accesses along columns over the banks.
    __shared__ float tile_b[TILE_N][TILE_K + 1];
    __shared__ float tile_a[TILE_K][TILE_M];
    __shared__ float result[TILE_M][TILE_N + 1];

    const int tid = threadIdx.x;
    const int tx = tid % THREADS_X;
    const int ty = tid / THREADS_X;
    const int n0 = blockIdx.x * TILE_N;
    const int m0 = blockIdx.y * TILE_M;

    // Four values of n, two of m.
    float acc[4][2] = {};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        for (int i = tid; i < TILE_N * TILE_K; i += THREADS) {
            const int n = n0 + i / TILE_K;
            const int k = k0 + i % TILE_K;
            tile_b[i / TILE_K][i % TILE_K] = (n < N && k < K) ? B[n * K + k] : 0.0f;
        }
        for (int i = tid; i < TILE_K * TILE_M; i += THREADS) {
            const int k = k0 + i / TILE_M;
            const int m = m0 + i % TILE_M;
            tile_a[i / TILE_M][i % TILE_M] = (k < K && m < M) ? A[k * M + m] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float a0 = tile_a[k][tx];
            const float a1 = tile_a[k][tx + THREADS_X];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float b = tile_b[ty * 4 + i][k];
                acc[i][0] += b * a0;
                acc[i][1] += b * a1;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        result[tx][ty * 4 + i] = acc[i][0];
        result[tx + THREADS_X][ty * 4 + i] = acc[i][1];
    }
    __syncthreads();
    for (int i = tid; i < TILE_M * TILE_N; i += THREADS) {
        const int m = m0 + i / TILE_N;
        const int n = n0 + i % TILE_N;
        if (m < M && n < N) {
            C[m * N + n] = result[i / TILE_N][i % TILE_N];
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    dim3 grid((N + TILE_N - 1) / TILE_N, (M + TILE_M - 1) / TILE_M);
    matmul_transposed_product<<<grid, THREADS>>>(A, B, C, M, K, N);
}
