// sum over a row of t (log t - log p), averaged over the rows: the divergence of targets
// from predictions as `batchmean` defines it.
//
// A block reduces one row; a second kernel, one block, averages the rows. Entries of the
// targets that are zero count as zero.

#include "warp_sum.cuh"

static constexpr int THREADS = 256;
static constexpr int WARPS = THREADS / WARP;

__device__ __forceinline__ float divergence(float p, float t) {
    const float own = t == 0.0f ? 0.0f : t * logf(t);
    return own - t * logf(p);
}

__device__ __forceinline__ float block_sum(float v) {
    __shared__ float warp_sums[WARPS];
    v = warp_sum(v);
    if (threadIdx.x % WARP == 0) {
        warp_sums[threadIdx.x / WARP] = v;
    }
    __syncthreads();
    float total = 0.0f;
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        total += warp_sums[i];
    }
    return total;
}

__global__ void row_divergence(const float* __restrict__ predictions,
                               const float* __restrict__ targets, float* __restrict__ rows,
                               int D) {
    const long long offset = static_cast<long long>(blockIdx.x) * D;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < D; i += THREADS) {
        sum += divergence(predictions[offset + i], targets[offset + i]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        rows[blockIdx.x] = sum;
    }
}

__global__ void mean_of_rows(const float* __restrict__ rows, float* __restrict__ loss, int B) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < B; i += THREADS) {
        sum += rows[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *loss = sum / B;
    }
}

void launch(const float* predictions, const float* targets, float* loss, int B, int D) {
    float* rows = scratch<float>(B);
    row_divergence<<<B, THREADS>>>(predictions, targets, rows, D);
    mean_of_rows<<<1, THREADS>>>(rows, loss, B);
}
