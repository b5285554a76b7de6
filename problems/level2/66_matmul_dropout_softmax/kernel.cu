// y = softmax(dropout(x * weight^T + bias)) per row, the dropout's mask being given.
//
// First a warp makes four neighbouring features of a row, so that an element of x is
// loaded once for four products; mask and scaling go into the store. Then a block per row
// turns y into its softmax in place.

#include "warp_sum.cuh"

static constexpr int WARPS = 4;
static constexpr int FEATURES = 4;
static constexpr int THREADS = 128;

__global__ void linear_dropout(const float* __restrict__ x, const bool* __restrict__ mask,
                               const float* __restrict__ weight, const float* __restrict__ bias,
                               float* __restrict__ y, int K, int N, float keep) {
    const int lane = threadIdx.x;
    const int n0 = (blockIdx.x * WARPS + threadIdx.y) * FEATURES;
    if (n0 >= N) {
        return;
    }
    const float* row = x + static_cast<long long>(blockIdx.y) * K;
    // A feature beyond the last repeats it and is not stored.
    const float* w[FEATURES];
    #pragma unroll
    for (int f = 0; f < FEATURES; ++f) {
        w[f] = weight + static_cast<long long>(min(n0 + f, N - 1)) * K;
    }

    float acc[FEATURES] = {};
    for (int k = lane; k < K; k += WARP) {
        const float v = row[k];
        #pragma unroll
        for (int f = 0; f < FEATURES; ++f) {
            acc[f] += v * w[f][k];
        }
    }
    #pragma unroll
    for (int f = 0; f < FEATURES; ++f) {
        acc[f] = warp_sum(acc[f]);
        if (lane == 0 && n0 + f < N) {
            const long long i = static_cast<long long>(blockIdx.y) * N + n0 + f;
            y[i] = (acc[f] + bias[n0 + f]) * static_cast<float>(mask[i]) / keep;
        }
    }
}

__global__ void softmax_in_place(float* y, int N) {
    __shared__ float tops[THREADS];
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    float* row = y + static_cast<long long>(blockIdx.x) * N;

    float top = -INFINITY;
    for (int i = tid; i < N; i += THREADS) {
        top = fmaxf(top, row[i]);
    }
    tops[tid] = top;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            tops[tid] = fmaxf(tops[tid], tops[tid + half]);
        }
        __syncthreads();
    }
    top = tops[0];

    float sum = 0.0f;
    for (int i = tid; i < N; i += THREADS) {
        const float e = expf(row[i] - top);
        row[i] = e;
        sum += e;
    }
    sums[tid] = sum;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
    const float inverse = 1.0f / sums[0];
    for (int i = tid; i < N; i += THREADS) {
        row[i] *= inverse;
    }
}

void launch(const float* x, const bool* mask, const float* weight, const float* bias, float* y,
            int B, int K, int N, float keep) {
    dim3 block(WARP, WARPS);
    dim3 grid((N + WARPS * FEATURES - 1) / (WARPS * FEATURES), B);
    linear_dropout<<<grid, block>>>(x, mask, weight, bias, y, K, N, keep);
    softmax_in_place<<<B, THREADS>>>(y, N);
}
