#pragma once
#include "tree_sum.cuh"

// The sum over a block of THREADS threads, a power of two, in every thread; `sums` may be used
// again at once.
template <int THREADS>
__device__ __forceinline__ float tree_total(float* sums, float v) {
    tree_sum<THREADS>(sums, v);
    const float total = sums[0];
    // The next call overwrites the sums.
    __syncthreads();
    return total;
}
