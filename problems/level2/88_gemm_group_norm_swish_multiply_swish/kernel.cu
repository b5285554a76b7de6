// y = swish(swish(group norm(x * weight^T + bias)) * multiplier), groups of 32 features.
//
// A group is as wide as a warp: lane j makes feature j of the group for the warp's two
// rows, reading weights and x from shared memory, and the group's mean and variance are
// two warp reductions. Four warps share the weights.

#include "swish.cuh"
#include "warp_sum.cuh"

static constexpr int WARPS = 4;
static constexpr int ROWS = 2;
static constexpr int BM = WARPS * ROWS;

__global__ void gemm_group_norm_swish(const float* __restrict__ x,
                                      const float* __restrict__ weight,
                                      const float* __restrict__ bias,
                                      const float* __restrict__ gamma,
                                      const float* __restrict__ beta,
                                      const float* __restrict__ multiply_weight,
                                      float* __restrict__ y, int B, int K, int N, float eps) {
    __shared__ float tile_w[WARP][WARP + 1];
    __shared__ float tile_x[BM][WARP];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int col = blockIdx.x * WARP + lane;
    const int row0 = blockIdx.y * BM;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(blockIdx.x) * WARP * K;

    float acc[ROWS] = {};
    for (int k0 = 0; k0 < K; k0 += WARP) {
        const int k = k0 + lane;
        #pragma unroll
        for (int i = warp; i < WARP; i += WARPS) {
            tile_w[i][lane] = k < K ? w_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = warp; i < BM; i += WARPS) {
            tile_x[i][lane] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < WARP; ++i) {
            const float w = tile_w[lane][i];
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                acc[r] += tile_x[warp * ROWS + r][i] * w;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float h = acc[r] + bias[col];
        const float d = h - warp_sum(h) / WARP;
        const float inv_std = rsqrtf(warp_sum(d * d) / WARP + eps);
        const float v = d * inv_std * gamma[col] + beta[col];
        const int row = row0 + warp * ROWS + r;
        if (row < B) {
            y[static_cast<long long>(row) * N + col] = swish(swish(v) * multiply_weight[col]);
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, const float* multiply_weight, float* y, int B, int K, int G, int N,
            float eps) {
    dim3 block(WARP, WARPS);
    dim3 grid(G, (B + BM - 1) / BM);
    gemm_group_norm_swish<<<grid, block>>>(x, weight, bias, gamma, beta, multiply_weight, y, B, K,
                                           N, eps);
}
