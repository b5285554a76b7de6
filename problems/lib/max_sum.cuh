#pragma once
#include "warp.cuh"

// Merges the lanes' pairs of a maximum and the sum of exponentials relative to it; the pair of
// all is left in every lane. An empty pair is (-FLT_MAX, 0): two infinities would give NaN.
__device__ __forceinline__ void warp_merge_max_sum(float& top, float& sum) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        const float other_top = __shfl_xor_sync(FULL_MASK, top, offset);
        const float other_sum = __shfl_xor_sync(FULL_MASK, sum, offset);
        const float higher = fmaxf(top, other_top);
        sum = sum * expf(top - higher) + other_sum * expf(other_top - higher);
        top = higher;
    }
}
