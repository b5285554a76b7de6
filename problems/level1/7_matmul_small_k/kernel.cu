// C = A * B for a short K: A is [M, K], B is [K, N].
//
// 64 terms of both factors fit into shared memory at once, so up to K = 64 a tile of C
// needs one staging only; what counts is the store of C, by float4 where rows allow it.

static constexpr int TILE = 64;
static constexpr int TILE_K = 64;
static constexpr int PER_THREAD = 4;
static constexpr int SIDE = TILE / PER_THREAD;
static constexpr int PITCH = TILE + 4;

__global__ void matmul_whole_k(const float* __restrict__ A, const float* __restrict__ B,
                               float* __restrict__ C, int M, int K, int N) {
    // Two arrays in dynamic memory: A's tile by column, B's tile by row.
    extern __shared__ __align__(16) float staged[];
    float* tile_a = staged;
    float* tile_b = staged + TILE_K * PITCH;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    float acc[PER_THREAD][PER_THREAD] = {};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        const int terms = min(TILE_K, K - k0);
        for (int i = ty; i < TILE; i += SIDE) {
            for (int k = tx; k < terms; k += SIDE) {
                const int row = row0 + i;
                tile_a[k * PITCH + i] = row < M ? A[row * K + k0 + k] : 0.0f;
            }
        }
        for (int k = ty; k < terms; k += SIDE) {
            for (int j = tx; j < TILE; j += SIDE) {
                const int col = col0 + j;
                tile_b[k * PITCH + j] = col < N ? B[(k0 + k) * N + col] : 0.0f;
            }
        }
        __syncthreads();

        for (int k = 0; k < terms; ++k) {
            const float4 a =
                *reinterpret_cast<const float4*>(tile_a + k * PITCH + ty * PER_THREAD);
            const float4 b =
                *reinterpret_cast<const float4*>(tile_b + k * PITCH + tx * PER_THREAD);
            const float column[PER_THREAD] = {a.x, a.y, a.z, a.w};
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                acc[i][0] += column[i] * b.x;
                acc[i][1] += column[i] * b.y;
                acc[i][2] += column[i] * b.z;
                acc[i][3] += column[i] * b.w;
            }
        }
        __syncthreads();
    }

    const int col = col0 + tx * PER_THREAD;
    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int row = row0 + ty * PER_THREAD + i;
        if (row < M) {
            float* out = C + static_cast<long long>(row) * N + col;
            if (N % 4 == 0 && col + PER_THREAD <= N) {
                *reinterpret_cast<float4*>(out) =
                    make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
            } else {
                #pragma unroll
                for (int j = 0; j < PER_THREAD; ++j) {
                    if (col + j < N) {
                        out[j] = acc[i][j];
                    }
                }
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    dim3 block(SIDE, SIDE);
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    const int bytes = 2 * TILE_K * PITCH * sizeof(float);
    matmul_whole_k<<<grid, block, bytes>>>(A, B, C, M, K, N);
}
