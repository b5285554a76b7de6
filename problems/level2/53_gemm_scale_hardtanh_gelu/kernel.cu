// y = gelu(clamp(scaling * (x * weight^T + bias))) in one kernel.
//
// A warp makes two rows by 32 columns, a lane per column. The 32 columns' weights pass
// through shared memory, padded against bank conflicts; x needs none, since a lane holds one k of
// each row and broadcasts it to the warp by a shuffle.

static constexpr int WARP = 32;
static constexpr int WARPS = 2;
static constexpr int ROWS = 2;
static constexpr unsigned FULL_MASK = 0xffffffffu;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

__global__ void gemm_shuffle(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ y, int B, int K,
                             int N, float scaling_factor, float lowest, float highest) {
    __shared__ float tile_w[WARP][WARP + 1];
    const int lane = threadIdx.x;
    const int col0 = blockIdx.x * WARP;
    const int row0 = (blockIdx.y * WARPS + threadIdx.y) * ROWS;
    const float* x_rows = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[ROWS] = {};
    for (int k0 = 0; k0 < K; k0 += WARP) {
        const int k = k0 + lane;
        for (int c = threadIdx.y; c < WARP; c += WARPS) {
            const bool exists = col0 + c < N && k < K;
            tile_w[c][lane] = exists ? w_tile[c * K + k] : 0.0f;
        }
        float own[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const bool exists = row0 + r < B && k < K;
            own[r] = exists ? x_rows[r * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < WARP; ++i) {
            const float w = tile_w[lane][i];
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                acc[r] += __shfl_sync(FULL_MASK, own[r], i) * w;
            }
        }
        __syncthreads();
    }

    const int col = col0 + lane;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (row0 + r < B && col < N) {
            const float h = (acc[r] + bias[col]) * scaling_factor;
            const float v = fminf(fmaxf(h, lowest), highest);
            y[static_cast<long long>(row0 + r) * N + col] =
                0.5f * v * (1.0f + erff(v * INV_SQRT_2));
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scaling_factor, float hardtanh_min, float hardtanh_max) {
    dim3 block(WARP, WARPS);
    dim3 grid((N + WARP - 1) / WARP, (B + WARPS * ROWS - 1) / (WARPS * ROWS));
    gemm_shuffle<<<grid, block>>>(x, weight, bias, y, B, K, N, scaling_factor, hardtanh_min,
                                  hardtanh_max);
}
