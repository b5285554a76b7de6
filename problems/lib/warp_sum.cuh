#pragma once
#include "warp.cuh"

// The sum over the warp, in every lane: a butterfly of five exchanges. All lanes take part.
__device__ __forceinline__ float warp_sum(float v) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v += __shfl_xor_sync(FULL_MASK, v, offset);
    }
    return v;
}
