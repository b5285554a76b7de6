#pragma once
#include "warp.cuh"

// The maximum over the warp, in every lane; a NaN is dropped. All lanes take part.
__device__ __forceinline__ float warp_max(float v) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v = fmaxf(v, __shfl_xor_sync(FULL_MASK, v, offset));
    }
    return v;
}
