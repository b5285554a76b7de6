// y[b] = max over pools of scale * gelu(average of 16 features of x * weight^T + bias).
//
// Averaging features is averaging rows of the weight, so that comes first: a pooled weight
// matrix sixteen times smaller, and a product sixteen times shorter. A block per row then
// makes its pools' values, a warp each in turn, and keeps the largest. The pooled weight is kept
// in half precision; sums stay in float.

#include <cuda_fp16.h>

#include "gelu.cuh"
#include "warp_sum.cuh"

static constexpr int POOL = 16;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;

__global__ void pool_weight(const float* __restrict__ weight, const float* __restrict__ bias,
                            __half* __restrict__ pooled_weight, float* __restrict__ pooled_bias,
                            int K) {
    const int k = blockIdx.x * THREADS + threadIdx.x;
    const int pool = blockIdx.y;
    if (k < K) {
        const float* column = weight + static_cast<long long>(pool) * POOL * K + k;
        float sum = 0.0f;
        #pragma unroll
        for (int i = 0; i < POOL; ++i) {
            sum += column[static_cast<long long>(i) * K];
        }
        pooled_weight[static_cast<long long>(pool) * K + k] = __float2half_rn(sum / POOL);
    }
    if (k == 0) {
        float sum = 0.0f;
        for (int i = 0; i < POOL; ++i) {
            sum += bias[pool * POOL + i];
        }
        pooled_bias[pool] = sum / POOL;
    }
}

__global__ void linear_gelu_max(const float* __restrict__ x,
                                const __half* __restrict__ pooled_weight,
                                const float* __restrict__ pooled_bias, float* __restrict__ y,
                                int K, int P, float scale_factor) {
    __shared__ float warp_max[WARPS];
    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;
    const float* row = x + static_cast<long long>(blockIdx.x) * K;

    float largest = -INFINITY;
    for (int p = warp; p < P; p += WARPS) {
        const __half* w = pooled_weight + static_cast<long long>(p) * K;
        float dot = 0.0f;
        #pragma unroll 4
        for (int k = lane; k < K; k += WARP) {
            dot += row[k] * __half2float(w[k]);
        }
        dot = warp_sum(dot);
        const float h = dot + pooled_bias[p];
        largest = fmaxf(largest, gelu(h) * scale_factor);
    }
    if (lane == 0) {
        warp_max[warp] = largest;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        #pragma unroll
        for (int i = 1; i < WARPS; ++i) {
            largest = fmaxf(largest, warp_max[i]);
        }
        y[blockIdx.x] = largest;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int P,
            float scale_factor) {
    __half* pooled_weight = scratch<__half>(static_cast<long long>(P) * K);
    float* pooled_bias = scratch<float>(P);
    dim3 grid((K + THREADS - 1) / THREADS, P);
    pool_weight<<<grid, THREADS>>>(weight, bias, pooled_weight, pooled_bias, K);
    linear_gelu_max<<<B, THREADS>>>(x, pooled_weight, pooled_bias, y, K, P, scale_factor);
}
