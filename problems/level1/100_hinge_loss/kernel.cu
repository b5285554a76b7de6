// Mean of max(1 - prediction * target, 0); the target of a column serves all rows.
//
// A block owns a strip of 256 columns and up to 16 rows: a thread keeps its column's
// target in a register while it walks down. Blocks leave partial sums, and a single block
// adds them.

#include "warp_sum.cuh"

static constexpr int THREADS = 256;
static constexpr int ROWS = 16;
static constexpr int WARPS = THREADS / WARP;

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

__global__ void strip_sums(const float* __restrict__ predictions,
                           const float* __restrict__ targets, float* __restrict__ partial,
                           int B, int D) {
    const int column = blockIdx.x * THREADS + threadIdx.x;
    const int first = blockIdx.y * ROWS;
    const int last = min(first + ROWS, B);

    float sum = 0.0f;
    if (column < D) {
        const float target = targets[column];
        for (int row = first; row < last; ++row) {
            const float p = predictions[static_cast<long long>(row) * D + column];
            sum += fmaxf(1.0f - p * target, 0.0f);
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.y * gridDim.x + blockIdx.x] = sum;
    }
}

__global__ void finish_mean(const float* __restrict__ partial, float* __restrict__ loss,
                            int parts, long long n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < parts; i += THREADS) {
        sum += partial[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *loss = sum / static_cast<float>(n);
    }
}

void launch(const float* predictions, const float* targets, float* loss, int B, int D) {
    dim3 grid((D + THREADS - 1) / THREADS, (B + ROWS - 1) / ROWS);
    const int parts = grid.x * grid.y;
    float* partial = scratch<float>(parts);
    strip_sums<<<grid, THREADS>>>(predictions, targets, partial, B, D);
    finish_mean<<<1, THREADS>>>(partial, loss, parts, static_cast<long long>(B) * D);
}
