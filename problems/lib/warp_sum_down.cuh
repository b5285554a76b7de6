#pragma once
#include "warp.cuh"

// The sum over the warp, in lane 0 alone; the others are left with parts of it. All lanes take part.
__device__ __forceinline__ float warp_sum_down(float v) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v += __shfl_down_sync(FULL_MASK, v, offset);
    }
    return v;
}
