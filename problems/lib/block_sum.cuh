#pragma once
#include "warp_sum.cuh"

// The sum over a block of WARPS full warps, in every thread. `parts` holds WARPS numbers in
// shared memory and must not be in use: one barrier stands between its writes and its reads,
// none after them.
template <int WARPS>
__device__ __forceinline__ float block_sum(float v, float* parts) {
    v = warp_sum(v);
    if (threadIdx.x % WARP == 0) {
        parts[threadIdx.x / WARP] = v;
    }
    __syncthreads();
    float total = 0.0f;
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        total += parts[i];
    }
    return total;
}
