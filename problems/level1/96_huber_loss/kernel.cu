// Mean of the smooth L1 distance (beta 1) over all elements, in one launch.
//
// Every block leaves a partial sum, then draws a ticket; the block with the last ticket
// adds all partial sums in order. The fence makes them visible before the ticket is.

#include "tree_sum.cuh"

static constexpr int THREADS = 128;
static constexpr int MAX_BLOCKS = 64;

__device__ __forceinline__ float smooth_l1(float p, float t) {
    const float d = fabsf(p - t);
    return d < 1.0f ? 0.5f * d * d : d - 0.5f;
}

__global__ void smooth_l1_mean(const float* __restrict__ predictions,
                               const float* __restrict__ targets, float* partial,
                               unsigned* tickets, float* __restrict__ loss, long long n) {
    __shared__ float sums[THREADS];
    __shared__ bool last;

    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    float sum = 0.0f;
    for (long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < n;
         i += stride) {
        sum += smooth_l1(predictions[i], targets[i]);
    }
    tree_sum<THREADS>(sums, sum);

    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicAdd(tickets, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    // The partial sums were written by other blocks: no stale value may come from a cache.
    __threadfence();
    sum = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) {
        sum += __ldcg(partial + i);
    }
    tree_sum<THREADS>(sums, sum);
    if (threadIdx.x == 0) {
        *loss = sums[0] / static_cast<float>(n);
    }
}

void launch(const float* predictions, const float* targets, float* loss, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const int blocks = min((n + THREADS - 1) / THREADS, static_cast<long long>(MAX_BLOCKS));
    float* partial = scratch<float>(blocks);
    unsigned* tickets = scratch<unsigned>(1);
    cudaMemset(tickets, 0, sizeof(unsigned));
    smooth_l1_mean<<<blocks, THREADS>>>(predictions, targets, partial, tickets, loss, n);
}
