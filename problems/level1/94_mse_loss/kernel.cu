// Mean of (prediction - target)^2 over all elements.
//
// A fixed number of blocks strides through the arrays four elements at a time and leaves
// one partial sum each; a second, single block adds those and divides. The order of
// additions does not depend on timing.

#include "warp_sum_down.cuh"

static constexpr int THREADS = 256;
static constexpr int WARPS = THREADS / WARP;
static constexpr int MAX_BLOCKS = 64;

// The sum over the block, in thread 0.
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float warp_sums[WARPS];
    const int lane = threadIdx.x % WARP;
    v = warp_sum_down(v);
    if (lane == 0) {
        warp_sums[threadIdx.x / WARP] = v;
    }
    __syncthreads();
    v = threadIdx.x < WARPS ? warp_sums[lane] : 0.0f;
    if (threadIdx.x < WARP) {
        #pragma unroll
        for (int offset = WARPS / 2; offset > 0; offset /= 2) {
            v += __shfl_down_sync(FULL_MASK, v, offset);
        }
    }
    return v;
}

__device__ __forceinline__ float squared(float a, float b) {
    const float d = a - b;
    return d * d;
}

__global__ void squared_errors(const float* __restrict__ predictions,
                               const float* __restrict__ targets, float* __restrict__ partial,
                               long long n) {
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    const long long first = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    const long long vectors = n / 4;
    const float4* p4 = reinterpret_cast<const float4*>(predictions);
    const float4* t4 = reinterpret_cast<const float4*>(targets);

    float sum = 0.0f;
    for (long long i = first; i < vectors; i += stride) {
        const float4 p = p4[i];
        const float4 t = t4[i];
        sum += squared(p.x, t.x) + squared(p.y, t.y) + squared(p.z, t.z) + squared(p.w, t.w);
    }
    for (long long i = vectors * 4 + first; i < n; i += stride) {
        sum += squared(predictions[i], targets[i]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

__global__ void finish_mean(const float* __restrict__ partial, float* __restrict__ loss,
                            int blocks, long long n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < blocks; i += THREADS) {
        sum += partial[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *loss = sum / static_cast<float>(n);
    }
}

void launch(const float* predictions, const float* targets, float* loss, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const long long per_block = THREADS * 4;
    const int blocks = min((n + per_block - 1) / per_block, static_cast<long long>(MAX_BLOCKS));
    float* partial = scratch<float>(blocks);
    squared_errors<<<blocks, THREADS>>>(predictions, targets, partial, n);
    finish_mean<<<1, THREADS>>>(partial, loss, blocks, n);
}
