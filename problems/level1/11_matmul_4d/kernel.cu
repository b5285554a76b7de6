// C = A * B over the last axis of A: A is [P, I, J, L], B is [L, K], R = P * I * J rows.
//
// Persistent blocks: a fixed number of them shares the 16x64 tiles of C, and each goes on to
// another tile when it is done with one.

static constexpr int TILE_R = 16;
static constexpr int TILE_C = 64;
static constexpr int TILE_L = 16;
static constexpr int PER_THREAD = 4;
static constexpr int THREADS_X = TILE_C / PER_THREAD;
static constexpr int THREADS_Y = TILE_R / PER_THREAD;
static constexpr int THREADS = THREADS_X * THREADS_Y;
static constexpr int MAX_BLOCKS = 16;

__global__ void matmul_persistent(const float* __restrict__ A, const float* __restrict__ B,
                                  float* __restrict__ C, int R, int L, int K, int col_tiles,
                                  int tiles) {
    __shared__ float tile_a[TILE_L][TILE_R + 1];
    __shared__ __align__(16) float tile_b[TILE_L][TILE_C];

    const int tid = threadIdx.x;
    const int tx = tid % THREADS_X;
    const int ty = tid / THREADS_X;

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int row0 = tile / col_tiles * TILE_R;
        const int col0 = tile % col_tiles * TILE_C;

        float4 acc[PER_THREAD];
        #pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            acc[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }

        for (int l0 = 0; l0 < L; l0 += TILE_L) {
            for (int i = tid; i < TILE_R * TILE_L; i += THREADS) {
                const int row = row0 + i / TILE_L;
                const int l = l0 + i % TILE_L;
                tile_a[i % TILE_L][i / TILE_L] =
                    (row < R && l < L) ? A[static_cast<long long>(row) * L + l] : 0.0f;
            }
            for (int i = tid; i < TILE_L * TILE_C; i += THREADS) {
                const int l = l0 + i / TILE_C;
                const int col = col0 + i % TILE_C;
                tile_b[i / TILE_C][i % TILE_C] = (l < L && col < K) ? B[l * K + col] : 0.0f;
            }
            __syncthreads();

            #pragma unroll
            for (int l = 0; l < TILE_L; ++l) {
                const float4 b = *reinterpret_cast<const float4*>(&tile_b[l][tx * PER_THREAD]);
                #pragma unroll
                for (int i = 0; i < PER_THREAD; ++i) {
                    const float a = tile_a[l][ty * PER_THREAD + i];
                    acc[i].x += a * b.x;
                    acc[i].y += a * b.y;
                    acc[i].z += a * b.z;
                    acc[i].w += a * b.w;
                }
            }
            // The next staging, of this tile of C or of the next one, overwrites both.
            __syncthreads();
        }

        #pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int row = row0 + ty * PER_THREAD + i;
            const int col = col0 + tx * PER_THREAD;
            const float values[PER_THREAD] = {acc[i].x, acc[i].y, acc[i].z, acc[i].w};
            #pragma unroll
            for (int j = 0; j < PER_THREAD; ++j) {
                if (row < R && col + j < K) {
                    C[static_cast<long long>(row) * K + col + j] = values[j];
                }
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int P, int I, int J, int L, int K) {
    const int R = P * I * J;
    const int col_tiles = (K + TILE_C - 1) / TILE_C;
    const int tiles = (R + TILE_R - 1) / TILE_R * col_tiles;
    matmul_persistent<<<min(tiles, MAX_BLOCKS), THREADS>>>(A, B, C, R, L, K, col_tiles, tiles);
}
