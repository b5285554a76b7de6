// C = A * B, row-major: A is [M, K], B is [K, N].
//
// A block of 8x8 threads makes a 32x32 tile of C, every thread a 4x4 corner of it. A's
// tile is stored transposed, so that a thread finds its four values of a column of A side
// by side, as it does those of a row of B: two 16-byte loads feed sixteen products.

static constexpr int TILE = 32;
static constexpr int TILE_K = 16;
static constexpr int PER_THREAD = 4;
static constexpr int SIDE = TILE / PER_THREAD;
static constexpr int THREADS = SIDE * SIDE;
// Four columns of padding keep rows 16-byte aligned.
static constexpr int PITCH = TILE + 4;

__global__ void matmul_register_tiles(const float* __restrict__ A, const float* __restrict__ B,
                                      float* __restrict__ C, int M, int K, int N) {
    __shared__ __align__(16) float tile_a[TILE_K][PITCH];
    __shared__ __align__(16) float tile_b[TILE_K][PITCH];

    const int tid = threadIdx.x;
    const int tx = tid % SIDE;
    const int ty = tid / SIDE;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    float acc[PER_THREAD][PER_THREAD] = {};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        // Zeros beyond the edge add nothing, so the sums need no guard.
        for (int i = tid; i < TILE * TILE_K; i += THREADS) {
            const int row = row0 + i / TILE_K;
            const int k = k0 + i % TILE_K;
            tile_a[i % TILE_K][i / TILE_K] = (row < M && k < K) ? A[row * K + k] : 0.0f;
        }
        for (int i = tid; i < TILE * TILE_K; i += THREADS) {
            const int k = k0 + i / TILE;
            const int col = col0 + i % TILE;
            tile_b[i / TILE][i % TILE] = (k < K && col < N) ? B[k * N + col] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float4 a = *reinterpret_cast<const float4*>(&tile_a[k][ty * PER_THREAD]);
            const float4 b = *reinterpret_cast<const float4*>(&tile_b[k][tx * PER_THREAD]);
            const float column[PER_THREAD] = {a.x, a.y, a.z, a.w};
            const float row[PER_THREAD] = {b.x, b.y, b.z, b.w};
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                #pragma unroll
                for (int j = 0; j < PER_THREAD; ++j) {
                    acc[i][j] += column[i] * row[j];
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        #pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            const int row = row0 + ty * PER_THREAD + i;
            const int col = col0 + tx * PER_THREAD + j;
            if (row < M && col < N) {
                C[row * N + col] = acc[i][j];
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    matmul_register_tiles<<<grid, THREADS>>>(A, B, C, M, K, N);
}
