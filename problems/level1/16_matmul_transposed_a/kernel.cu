// C = A^T * B: A is [K, M], B is [K, N].
//
// Both factors are stored with K as rows, so tiles go to shared memory as they are. Two
// buffers: the next pair of tiles is stored while the present one is multiplied.

static constexpr int TILE_M = 16;
static constexpr int TILE_N = 32;
static constexpr int TILE_K = 16;
static constexpr int THREADS = 64;
static constexpr int THREADS_X = 8;
static constexpr int A_ITEMS = TILE_K * TILE_M / THREADS;
static constexpr int B_ITEMS = TILE_K * TILE_N / THREADS;

__global__ void matmul_at_b(const float* __restrict__ A, const float* __restrict__ B,
                            float* __restrict__ C, int M, int K, int N) {
    __shared__ __align__(16) float tile_a[2][TILE_K][TILE_M];
    __shared__ __align__(16) float tile_b[2][TILE_K][TILE_N];

    const int tid = threadIdx.x;
    const int tx = tid % THREADS_X;
    const int ty = tid / THREADS_X;
    const int m0 = blockIdx.y * TILE_M;
    const int n0 = blockIdx.x * TILE_N;
    const int steps = (K + TILE_K - 1) / TILE_K;

    float acc[2][4] = {};

    // Step `steps` is one past the end: the last round only multiplies.
    for (int step = 0; step <= steps; ++step) {
        if (step < steps) {
            const int fill = step % 2;
            const int k0 = step * TILE_K;
            #pragma unroll
            for (int i = 0; i < A_ITEMS; ++i) {
                const int k = (tid + i * THREADS) / TILE_M;
                const int m = (tid + i * THREADS) % TILE_M;
                const bool exists = k0 + k < K && m0 + m < M;
                tile_a[fill][k][m] = exists ? A[(k0 + k) * M + m0 + m] : 0.0f;
            }
            #pragma unroll
            for (int i = 0; i < B_ITEMS; ++i) {
                const int k = (tid + i * THREADS) / TILE_N;
                const int n = (tid + i * THREADS) % TILE_N;
                const bool exists = k0 + k < K && n0 + n < N;
                tile_b[fill][k][n] = exists ? B[(k0 + k) * N + n0 + n] : 0.0f;
            }
        }
        if (step > 0) {
            const int full = (step - 1) % 2;
            #pragma unroll
            for (int k = 0; k < TILE_K; ++k) {
                const float2 a = *reinterpret_cast<const float2*>(&tile_a[full][k][ty * 2]);
                const float4 b = *reinterpret_cast<const float4*>(&tile_b[full][k][tx * 4]);
                acc[0][0] += a.x * b.x;
                acc[0][1] += a.x * b.y;
                acc[0][2] += a.x * b.z;
                acc[0][3] += a.x * b.w;
                acc[1][0] += a.y * b.x;
                acc[1][1] += a.y * b.y;
                acc[1][2] += a.y * b.z;
                acc[1][3] += a.y * b.w;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int m = m0 + ty * 2 + i;
            const int n = n0 + tx * 4 + j;
            if (m < M && n < N) {
                C[m * N + n] = acc[i][j];
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    dim3 grid((N + TILE_N - 1) / TILE_N, (M + TILE_M - 1) / TILE_M);
    matmul_at_b<<<grid, THREADS>>>(A, B, C, M, K, N);
}
