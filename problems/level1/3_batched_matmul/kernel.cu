// C[p] = A[p] * B[p] for every p: A is [P, M, K], B is [P, K, N].
//
// A block makes 16x32 entries of one product; each of its 4 rows of threads keeps four
// entries of a column in registers, so a value of B's tile, once read, serves four sums.

static constexpr int TILE_M = 16;
static constexpr int TILE_N = 32;
static constexpr int TILE_K = 32;
static constexpr int ROWS = 4;
static constexpr int PER_THREAD = TILE_M / ROWS;

__global__ void batched_matmul(const float* __restrict__ A, const float* __restrict__ B,
                               float* __restrict__ C, int M, int K, int N) {
    __shared__ float tile_a[TILE_M][TILE_K];
    __shared__ float tile_b[TILE_K][TILE_N];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE_M;
    const int col = blockIdx.x * TILE_N + tx;
    const float* a = A + static_cast<long long>(blockIdx.z) * M * K;
    const float* b = B + static_cast<long long>(blockIdx.z) * K * N;
    float* c = C + static_cast<long long>(blockIdx.z) * M * N;

    float acc[PER_THREAD] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        for (int i = ty; i < TILE_M; i += ROWS) {
            const bool exists = row0 + i < M && k0 + tx < K;
            tile_a[i][tx] = exists ? a[(row0 + i) * K + k0 + tx] : 0.0f;
        }
        for (int i = ty; i < TILE_K; i += ROWS) {
            const bool exists = k0 + i < K && col < N;
            tile_b[i][tx] = exists ? b[(k0 + i) * N + col] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float value = tile_b[k][tx];
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                acc[i] += tile_a[ty * PER_THREAD + i][k] * value;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int row = row0 + ty * PER_THREAD + i;
        if (row < M && col < N) {
            c[row * N + col] = acc[i];
        }
    }
}

void launch(const float* A, const float* B, float* C, int P, int M, int K, int N) {
    dim3 block(TILE_N, ROWS);
    dim3 grid((N + TILE_N - 1) / TILE_N, (M + TILE_M - 1) / TILE_M, P);
    batched_matmul<<<grid, block>>>(A, B, C, M, K, N);
}
