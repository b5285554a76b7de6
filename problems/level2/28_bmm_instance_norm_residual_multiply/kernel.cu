// h = x * weight^T + bias, normalised over each row; y = (h + other) * other.
//
// One block per row. Warps make the dot products one after the other and leave them in
// shared memory, where the whole row stays: mean, variance and the last step never touch
// global memory again. The variance is a second pass over the centred values.

#include "block_sum.cuh"
#include "warp_sum.cuh"

static constexpr int WARPS = 8;
static constexpr int THREADS = WARP * WARPS;

__global__ void linear_norm_row(const float* __restrict__ x, const float* __restrict__ other,
                                const float* __restrict__ weight, const float* __restrict__ bias,
                                float* __restrict__ y, int K, int N, float eps) {
    extern __shared__ float row[];
    __shared__ float mean_parts[WARPS];
    __shared__ float variance_parts[WARPS];

    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    const float* in = x + static_cast<long long>(blockIdx.x) * K;

    for (int n = tid / WARP; n < N; n += WARPS) {
        const float* w = weight + static_cast<long long>(n) * K;
        float dot = 0.0f;
        #pragma unroll 4
        for (int k = lane; k < K; k += WARP) {
            dot += in[k] * w[k];
        }
        dot = warp_sum(dot);
        if (lane == 0) {
            row[n] = dot + bias[n];
        }
    }
    __syncthreads();

    float sum = 0.0f;
    for (int n = tid; n < N; n += THREADS) {
        sum += row[n];
    }
    const float mean = block_sum<WARPS>(sum, mean_parts) / N;

    float squares = 0.0f;
    for (int n = tid; n < N; n += THREADS) {
        const float d = row[n] - mean;
        squares += d * d;
    }
    const float inv_std = rsqrtf(block_sum<WARPS>(squares, variance_parts) / N + eps);

    const long long offset = static_cast<long long>(blockIdx.x) * N;
    for (int n = tid; n < N; n += THREADS) {
        const float o = other[offset + n];
        y[offset + n] = ((row[n] - mean) * inv_std + o) * o;
    }
}

void launch(const float* x, const float* other, const float* weight, const float* bias, float* y,
            int B, int K, int N, float eps) {
    linear_norm_row<<<B, THREADS, N * sizeof(float)>>>(x, other, weight, bias, y, K, N, eps);
}
