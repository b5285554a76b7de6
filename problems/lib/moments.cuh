#pragma once
#include "warp.cuh"

// Count, mean and sum of squared deviations of some values, as Welford has them.
struct Moments {
    float count;
    float mean;
    float m2;
};

// The moments of both sets of values together (Chan et al.); two empty sets give an empty one.
__device__ __forceinline__ Moments merge(Moments a, Moments b) {
    Moments out;
    out.count = a.count + b.count;
    const float share = out.count > 0.0f ? b.count / out.count : 0.0f;
    const float delta = b.mean - a.mean;
    out.mean = a.mean + delta * share;
    out.m2 = a.m2 + b.m2 + delta * delta * a.count * share;
    return out;
}

// The moments over the warp, in every lane. All lanes take part.
__device__ __forceinline__ Moments warp_merge(Moments m) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        Moments other;
        other.count = __shfl_xor_sync(FULL_MASK, m.count, offset);
        other.mean = __shfl_xor_sync(FULL_MASK, m.mean, offset);
        other.m2 = __shfl_xor_sync(FULL_MASK, m.m2, offset);
        m = merge(m, other);
    }
    return m;
}
