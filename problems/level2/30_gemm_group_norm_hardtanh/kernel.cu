// h = x * weight^T + bias, group norm over G groups of GS features, clamped to [-2, 2].
//
// The GEMM leaves h in a scratch tensor, four rows a block with one warp each. The norm
// takes one block per row and group: count, mean and M2 by Welford within a thread, merged
// between threads by Chan's formula, which never subtracts two large sums.

#include "moments.cuh"
#include "warp_sum_down.cuh"

static constexpr int ROWS = 4;
static constexpr int THREADS = 64;
static constexpr int WARPS = THREADS / WARP;
static constexpr int COLS = 8;

// A warp makes eight neighbouring outputs of one row: its lanes share K out.
__global__ void linear_rows(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias, float* __restrict__ h, int B, int K,
                            int N) {
    const int lane = threadIdx.x;
    const int row = blockIdx.y * ROWS + threadIdx.y;
    const int col0 = blockIdx.x * COLS;
    if (row >= B) {
        return;
    }
    const float* in = x + static_cast<long long>(row) * K;

    float acc[COLS] = {};
    for (int k = lane; k < K; k += WARP) {
        const float v = in[k];
        #pragma unroll
        for (int c = 0; c < COLS; ++c) {
            if (col0 + c < N) {
                acc[c] += v * weight[static_cast<long long>(col0 + c) * K + k];
            }
        }
    }
    #pragma unroll
    for (int c = 0; c < COLS; ++c) {
        acc[c] = warp_sum_down(acc[c]);
        if (lane == 0 && col0 + c < N) {
            h[static_cast<long long>(row) * N + col0 + c] = acc[c] + bias[col0 + c];
        }
    }
}

__global__ void group_norm_hardtanh(const float* __restrict__ h, const float* __restrict__ gamma,
                                    const float* __restrict__ beta, float* __restrict__ y,
                                    int G, int GS, float eps) {
    __shared__ Moments parts[WARPS];
    const int tid = threadIdx.x;
    const int group = blockIdx.x % G;
    const long long offset = static_cast<long long>(blockIdx.x) * GS;

    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = tid; i < GS; i += THREADS) {
        const float v = h[offset + i];
        m.count += 1.0f;
        const float delta = v - m.mean;
        m.mean += delta / m.count;
        m.m2 += delta * (v - m.mean);
    }
    m = warp_merge(m);
    if (tid % WARP == 0) {
        parts[tid / WARP] = m;
    }
    __syncthreads();
    m = merge(parts[0], parts[1]);
    const float inv_std = rsqrtf(m.m2 / GS + eps);

    for (int i = tid; i < GS; i += THREADS) {
        const int n = group * GS + i;
        const float v = (h[offset + i] - m.mean) * inv_std * gamma[n] + beta[n];
        y[offset + i] = fminf(fmaxf(v, -2.0f), 2.0f);
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int K, int G, int GS, int N, float eps) {
    float* h = scratch<float>(static_cast<long long>(B) * N);
    dim3 block(WARP, ROWS);
    dim3 grid((N + COLS - 1) / COLS, (B + ROWS - 1) / ROWS);
    linear_rows<<<grid, block>>>(x, weight, bias, h, B, K, N);
    group_norm_hardtanh<<<B * G, THREADS>>>(h, gamma, beta, y, G, GS, eps);
}
