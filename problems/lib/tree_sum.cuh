#pragma once

// Leaves the sum over a block of THREADS threads, a power of two, in sums[0], which every
// thread may read: a tree in shared memory, half as many threads at work in each step.
template <int THREADS>
__device__ __forceinline__ void tree_sum(float* sums, float v) {
    const int tid = threadIdx.x;
    sums[tid] = v;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
}
