// y = softmax(gelu(x * weight^T + bias)) per row, in one kernel.
//
// One block per row. A warp makes two features at a time, half the row apart, and leaves
// them in shared memory; once all logits are there, maximum, exponentials, sum and
// division follow without any further read of global memory.

#include "gelu.cuh"
#include "warp_max.cuh"
#include "warp_sum.cuh"

static constexpr int WARPS = 4;
static constexpr int THREADS = WARP * WARPS;

__global__ void linear_gelu_softmax(const float* __restrict__ x,
                                    const float* __restrict__ weight,
                                    const float* __restrict__ bias, float* __restrict__ y, int K,
                                    int N) {
    extern __shared__ float logits[];
    __shared__ float tops[WARPS];
    __shared__ float sums[WARPS];

    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    const int warp = tid / WARP;
    const float* row = x + static_cast<long long>(blockIdx.x) * K;
    const int half = (N + 1) / 2;

    for (int n = warp; n < half; n += WARPS) {
        // An odd row has no partner for its middle feature, which then makes itself twice.
        const int m = min(n + half, N - 1);
        const float* a = weight + static_cast<long long>(n) * K;
        const float* b = weight + static_cast<long long>(m) * K;
        float dot_a = 0.0f;
        float dot_b = 0.0f;
        for (int k = lane; k < K; k += WARP) {
            const float v = row[k];
            dot_a += v * a[k];
            dot_b += v * b[k];
        }
        dot_a = warp_sum(dot_a);
        dot_b = warp_sum(dot_b);
        if (lane == 0) {
            logits[n] = gelu(dot_a + bias[n]);
            if (n + half < N) {
                logits[m] = gelu(dot_b + bias[m]);
            }
        }
    }
    __syncthreads();

    float top = -INFINITY;
    for (int n = tid; n < N; n += THREADS) {
        top = fmaxf(top, logits[n]);
    }
    top = warp_max(top);
    if (lane == 0) {
        tops[warp] = top;
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        top = fmaxf(top, tops[i]);
    }

    // From here on a thread reads only the logits that it wrote itself.
    float sum = 0.0f;
    for (int n = tid; n < N; n += THREADS) {
        const float e = expf(logits[n] - top);
        logits[n] = e;
        sum += e;
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        sums[warp] = sum;
    }
    __syncthreads();
    float total = 0.0f;
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        total += sums[i];
    }
    for (int n = tid; n < N; n += THREADS) {
        y[static_cast<long long>(blockIdx.x) * N + n] = logits[n] / total;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    linear_gelu_softmax<<<B, THREADS, N * sizeof(float)>>>(x, weight, bias, y, K, N);
}
