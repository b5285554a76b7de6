// C = A * B^T: A is [M, K], B is [N, K]. An entry is the dot product of two rows.
//
// Rows of both tiles stay rows in shared memory, and a thread reads four terms of four
// rows of each at once: eight 16-byte loads feed 64 products. Global rows are read by
// float4 if K is a multiple of four, and by single elements otherwise.

static constexpr int TILE = 32;
static constexpr int TILE_K = 16;
static constexpr int SIDE = 8;
static constexpr int PER_THREAD = TILE / SIDE;
static constexpr int THREADS = SIDE * SIDE;
static constexpr int VEC = 4;
static constexpr int VECTORS = TILE_K / VEC;
// Padding keeps rows 16-byte aligned and off each other's banks.
static constexpr int PITCH = TILE_K + VEC;

template <bool ALIGNED>
__device__ __forceinline__ float4 load4(const float* __restrict__ matrix, int row, int rows,
                                        int k, int K) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < rows) {
        const float* at = matrix + row * K + k;
        if (ALIGNED) {
            // K is a multiple of four: a vector lies inside or outside as a whole.
            if (k < K) {
                v = *reinterpret_cast<const float4*>(at);
            }
        } else {
            v.x = k < K ? at[0] : 0.0f;
            v.y = k + 1 < K ? at[1] : 0.0f;
            v.z = k + 2 < K ? at[2] : 0.0f;
            v.w = k + 3 < K ? at[3] : 0.0f;
        }
    }
    return v;
}

template <bool ALIGNED>
__global__ void matmul_a_bt(const float* __restrict__ A, const float* __restrict__ B,
                            float* __restrict__ C, int M, int K, int N) {
    __shared__ __align__(16) float tile_a[TILE][PITCH];
    __shared__ __align__(16) float tile_b[TILE][PITCH];

    const int tid = threadIdx.x;
    const int tx = tid % SIDE;
    const int ty = tid / SIDE;
    const int m0 = blockIdx.y * TILE;
    const int n0 = blockIdx.x * TILE;

    float acc[PER_THREAD][PER_THREAD] = {};

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        for (int i = tid; i < TILE * VECTORS; i += THREADS) {
            const int r = i / VECTORS;
            const int k = i % VECTORS * VEC;
            *reinterpret_cast<float4*>(&tile_a[r][k]) = load4<ALIGNED>(A, m0 + r, M, k0 + k, K);
            *reinterpret_cast<float4*>(&tile_b[r][k]) = load4<ALIGNED>(B, n0 + r, N, k0 + k, K);
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; k += VEC) {
            float4 a[PER_THREAD];
            float4 b[PER_THREAD];
            #pragma unroll
            for (int p = 0; p < PER_THREAD; ++p) {
                a[p] = *reinterpret_cast<const float4*>(&tile_a[ty + p * SIDE][k]);
                b[p] = *reinterpret_cast<const float4*>(&tile_b[tx + p * SIDE][k]);
            }
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                #pragma unroll
                for (int j = 0; j < PER_THREAD; ++j) {
                    acc[i][j] += a[i].x * b[j].x;
                    acc[i][j] += a[i].y * b[j].y;
                    acc[i][j] += a[i].z * b[j].z;
                    acc[i][j] += a[i].w * b[j].w;
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        #pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            const int m = m0 + ty + i * SIDE;
            const int n = n0 + tx + j * SIDE;
            if (m < M && n < N) {
                C[m * N + n] = acc[i][j];
            }
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    if (K % VEC == 0) {
        matmul_a_bt<true><<<grid, THREADS>>>(A, B, C, M, K, N);
    } else {
        matmul_a_bt<false><<<grid, THREADS>>>(A, B, C, M, K, N);
    }
}
