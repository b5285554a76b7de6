// Mean over rows of logsumexp(logits) - logits[target].
//
// A warp owns a row and keeps the running maximum with the sum of exponentials relative to
// it; the lanes merge theirs by shuffles. A second kernel, one block, averages the rows.

#include "max_sum.cuh"

static constexpr int WARPS = 4;
static constexpr int MEAN_THREADS = 256;

__global__ void row_losses(const float* __restrict__ logits,
                           const long long* __restrict__ targets, float* __restrict__ losses,
                           int B, int C) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * WARPS + threadIdx.y;
    if (row >= B) {
        return;
    }
    const float* in = logits + static_cast<long long>(row) * C;
    // Rows are 16-byte aligned only if C is a multiple of four.
    const int vectors = C % 4 == 0 ? C / 4 : 0;
    const float4* in4 = reinterpret_cast<const float4*>(in);

    // Finite, so that merging with an idle lane makes no NaN.
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int i = lane; i < vectors; i += WARP) {
        const float4 v = in4[i];
        const float higher = fmaxf(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), top);
        sum = sum * expf(top - higher) + expf(v.x - higher) + expf(v.y - higher)
            + expf(v.z - higher) + expf(v.w - higher);
        top = higher;
    }
    for (int i = vectors * 4 + lane; i < C; i += WARP) {
        const float v = in[i];
        const float higher = fmaxf(top, v);
        sum = sum * expf(top - higher) + expf(v - higher);
        top = higher;
    }
    warp_merge_max_sum(top, sum);
    if (lane == 0) {
        losses[row] = logf(sum) + (top - in[targets[row]]);
    }
}

__global__ void mean_of_rows(const float* __restrict__ losses, float* __restrict__ loss, int B) {
    __shared__ float sums[MEAN_THREADS];
    const int tid = threadIdx.x;
    float sum = 0.0f;
    for (int i = tid; i < B; i += MEAN_THREADS) {
        sum += losses[i];
    }
    sums[tid] = sum;
    __syncthreads();
    for (int half = MEAN_THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        *loss = sums[0] / B;
    }
}

void launch(const float* logits, const long long* targets, float* loss, int B, int C) {
    float* losses = scratch<float>(B);
    dim3 block(WARP, WARPS);
    row_losses<<<(B + WARPS - 1) / WARPS, block>>>(logits, targets, losses, B, C);
    mean_of_rows<<<1, MEAN_THREADS>>>(losses, loss, B);
}
