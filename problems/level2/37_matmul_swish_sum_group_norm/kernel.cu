// h = swish(x * weight^T + linear_bias) + bias, group norm over G groups of GS features.
//
// A block makes one group of four rows from the first product to the last store. Each of
// its 64 threads owns every 64th feature of the group, with four sums, one a row; x passes
// through shared memory in pieces. h lives in y between the statistics and the norm, each
// thread reading only what it wrote.

#include "swish.cuh"
#include "warp_sum.cuh"

static constexpr int THREADS = 64;
static constexpr int WARPS = THREADS / WARP;
static constexpr int ROWS = 4;
static constexpr int BK = 64;

// The sums over the block of ROWS values per thread, in every thread.
__device__ __forceinline__ void block_sums(float (&v)[ROWS], float (*parts)[ROWS]) {
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        v[r] = warp_sum(v[r]);
    }
    if (threadIdx.x % WARP == 0) {
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            parts[threadIdx.x / WARP][r] = v[r];
        }
    }
    __syncthreads();
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        v[r] = parts[0][r] + parts[1][r];
    }
}

__global__ void linear_swish_group_norm(
    const float* __restrict__ x, const float* __restrict__ weight,
    const float* __restrict__ linear_bias, const float* __restrict__ bias,
    const float* __restrict__ gamma, const float* __restrict__ beta, float* y, int B, int K,
    int N, int GS, float eps) {
    __shared__ float tile_x[ROWS][BK];
    __shared__ float mean_parts[WARPS][ROWS];
    __shared__ float variance_parts[WARPS][ROWS];

    const int tid = threadIdx.x;
    const int first = blockIdx.x * GS;
    const int row0 = blockIdx.y * ROWS;

    float sums[ROWS] = {};
    for (int i0 = 0; i0 < GS; i0 += THREADS) {
        const int n = first + i0 + tid;
        const bool mine = i0 + tid < GS;
        float acc[ROWS] = {};
        for (int k0 = 0; k0 < K; k0 += BK) {
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const bool exists = row0 + r < B && k0 + tid < K;
                tile_x[r][tid] =
                    exists ? x[static_cast<long long>(row0 + r) * K + k0 + tid] : 0.0f;
            }
            __syncthreads();
            if (mine) {
                const float* w = weight + static_cast<long long>(n) * K + k0;
                const int terms = min(BK, K - k0);
                for (int k = 0; k < terms; ++k) {
                    const float v = w[k];
                    #pragma unroll
                    for (int r = 0; r < ROWS; ++r) {
                        acc[r] += tile_x[r][k] * v;
                    }
                }
            }
            __syncthreads();
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (mine && row0 + r < B) {
                const float h = swish(acc[r] + linear_bias[n]) + bias[n];
                y[static_cast<long long>(row0 + r) * N + n] = h;
                sums[r] += h;
            }
        }
    }

    block_sums(sums, mean_parts);
    float squares[ROWS] = {};
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float mean = sums[r] / GS;
        for (int i = tid; row0 + r < B && i < GS; i += THREADS) {
            const float d = y[static_cast<long long>(row0 + r) * N + first + i] - mean;
            squares[r] += d * d;
        }
    }
    block_sums(squares, variance_parts);

    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float mean = sums[r] / GS;
        const float inv_std = rsqrtf(squares[r] / GS + eps);
        for (int i = tid; row0 + r < B && i < GS; i += THREADS) {
            const int n = first + i;
            float* out = y + static_cast<long long>(row0 + r) * N + n;
            *out = (*out - mean) * inv_std * gamma[n] + beta[n];
        }
    }
}

void launch(const float* x, const float* weight, const float* linear_bias, const float* bias,
            const float* gamma, const float* beta, float* y, int B, int K, int G, int GS, int N,
            float eps) {
    dim3 grid(G, (B + ROWS - 1) / ROWS);
    linear_swish_group_norm<<<grid, THREADS>>>(x, weight, linear_bias, bias, gamma, beta, y, B, K,
                                               N, GS, eps);
}
