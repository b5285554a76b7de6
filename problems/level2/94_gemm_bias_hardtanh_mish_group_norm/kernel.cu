// h = mish(clamp(x * weight^T + linear_bias + bias, -1, 1)); y = group norm of h, groups of
// 32 features.
//
// The GEMM leaves h in y. A warp then takes one group of one row, a value per lane: the
// whole group is in registers when it is normalised, so it is read and written once.

#include "warp_sum.cuh"

static constexpr int BM = 8;
static constexpr int BN = 32;
static constexpr int BK = 32;
static constexpr int TM = 4;
static constexpr int TN = 2;
static constexpr int TX = BN / TN;
static constexpr int TY = BM / TM;
static constexpr int THREADS = TX * TY;
static constexpr int WARPS = 4;

__device__ __forceinline__ float clamp_mish(float v) {
    v = fminf(fmaxf(v, -1.0f), 1.0f);
    return v * tanhf(log1pf(expf(v)));
}

__global__ void gemm_mish(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ linear_bias, const float* __restrict__ bias,
                          float* __restrict__ h, int B, int K, int N) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < BM; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < BN; i += THREADS / BK) {
            // The number of features is a multiple of 32.
            tile_w[i][tid % BK] = k < K ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float w0 = tile_w[tx][i];
            const float w1 = tile_w[tx + TX][i];
            #pragma unroll
            for (int m = 0; m < TM; ++m) {
                const float a = tile_x[ty * TM + m][i];
                acc[m][0] += a * w0;
                acc[m][1] += a * w1;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int m = 0; m < TM; ++m) {
        const int row = row0 + ty * TM + m;
        #pragma unroll
        for (int n = 0; n < TN; ++n) {
            const int col = col0 + tx + n * TX;
            if (row < B) {
                h[static_cast<long long>(row) * N + col] =
                    clamp_mish(acc[m][n] + linear_bias[col] + bias[col]);
            }
        }
    }
}

__global__ void norm_groups(float* y, const float* __restrict__ gamma,
                            const float* __restrict__ beta, int rows_times_groups, int G,
                            float eps) {
    const int lane = threadIdx.x;
    const int at = blockIdx.x * WARPS + threadIdx.y;
    if (at >= rows_times_groups) {
        return;
    }
    const int col = at % G * WARP + lane;
    float* group = y + static_cast<long long>(at) * WARP;

    const float v = group[lane];
    float sum = v;
    sum = warp_sum(sum);
    const float d = v - sum / WARP;
    float squares = d * d;
    squares = warp_sum(squares);
    group[lane] = d * rsqrtf(squares / WARP + eps) * gamma[col] + beta[col];
}

void launch(const float* x, const float* weight, const float* linear_bias, const float* bias,
            const float* gamma, const float* beta, float* y, int B, int K, int G, int N,
            float eps) {
    dim3 block(TX, TY);
    dim3 grid(G, (B + BM - 1) / BM);
    gemm_mish<<<grid, block>>>(x, weight, linear_bias, bias, y, B, K, N);
    dim3 norm_block(WARP, WARPS);
    norm_groups<<<(B * G + WARPS - 1) / WARPS, norm_block>>>(y, gamma, beta, B * G, G, eps);
}
