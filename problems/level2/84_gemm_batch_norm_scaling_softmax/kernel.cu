// y = softmax(scale * batch norm(x * weight^T + bias)), the norm over rows in training
// mode, the softmax over features.
//
// A warp makes the outputs of two rows with every row of the weight that it loads. A warp
// per column then finds mean and deviation of h, and the softmax, a block per row, applies
// the norm to every element that it reads instead of storing it first.

#include "warp_max.cuh"
#include "warp_sum.cuh"

static constexpr int WARPS = 4;
static constexpr int THREADS = WARP * WARPS;
static constexpr int ROWS = 2;

__global__ void linear_pairs(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ h, int B, int K,
                             int N) {
    const int lane = threadIdx.x;
    const int col = blockIdx.x * WARPS + threadIdx.y;
    const int row0 = blockIdx.y * ROWS;
    if (col >= N) {
        return;
    }
    const bool second = row0 + 1 < B;
    const float* w = weight + static_cast<long long>(col) * K;
    const float* a = x + static_cast<long long>(row0) * K;
    const float* b = second ? a + K : a;

    float dot_a = 0.0f;
    float dot_b = 0.0f;
    for (int k = lane; k < K; k += WARP) {
        const float v = w[k];
        dot_a += a[k] * v;
        dot_b += b[k] * v;
    }
    dot_a = warp_sum(dot_a);
    dot_b = warp_sum(dot_b);
    if (lane == 0) {
        float* out = h + static_cast<long long>(row0) * N + col;
        out[0] = dot_a + bias[col];
        if (second) {
            out[N] = dot_b + bias[col];
        }
    }
}

__global__ void column_statistics(const float* __restrict__ h, float* __restrict__ mean,
                                  float* __restrict__ inv_std, int B, int N, float eps) {
    const int lane = threadIdx.x;
    const int col = blockIdx.x * WARPS + threadIdx.y;
    if (col >= N) {
        return;
    }
    float sum = 0.0f;
    for (int row = lane; row < B; row += WARP) {
        sum += h[static_cast<long long>(row) * N + col];
    }
    const float average = warp_sum(sum) / B;
    float squares = 0.0f;
    for (int row = lane; row < B; row += WARP) {
        const float d = h[static_cast<long long>(row) * N + col] - average;
        squares += d * d;
    }
    squares = warp_sum(squares);
    if (lane == 0) {
        mean[col] = average;
        inv_std[col] = rsqrtf(squares / B + eps);
    }
}

__global__ void norm_softmax(const float* __restrict__ h, const float* __restrict__ mean,
                             const float* __restrict__ inv_std, const float* __restrict__ gamma,
                             const float* __restrict__ beta, const float* __restrict__ scale,
                             float* __restrict__ y, int N) {
    __shared__ float tops[WARPS];
    __shared__ float sums[WARPS];
    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    const long long offset = static_cast<long long>(blockIdx.x) * N;
    const float factor = *scale;
    auto normed = [&](int n) {
        return factor * ((h[offset + n] - mean[n]) * inv_std[n] * gamma[n] + beta[n]);
    };

    float top = -INFINITY;
    for (int n = tid; n < N; n += THREADS) {
        top = fmaxf(top, normed(n));
    }
    top = warp_max(top);
    if (lane == 0) {
        tops[tid / WARP] = top;
    }
    __syncthreads();
    top = fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3]));

    float sum = 0.0f;
    for (int n = tid; n < N; n += THREADS) {
        sum += expf(normed(n) - top);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        sums[tid / WARP] = sum;
    }
    __syncthreads();
    sum = sums[0] + sums[1] + sums[2] + sums[3];

    for (int n = tid; n < N; n += THREADS) {
        y[offset + n] = expf(normed(n) - top) / sum;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, const float* scale, float* y, int B, int K, int N, float eps) {
    float* h = scratch<float>(static_cast<long long>(B) * N);
    float* mean = scratch<float>(N);
    float* inv_std = scratch<float>(N);
    dim3 block(WARP, WARPS);
    const int columns = (N + WARPS - 1) / WARPS;
    dim3 grid(columns, (B + ROWS - 1) / ROWS);
    linear_pairs<<<grid, block>>>(x, weight, bias, h, B, K, N);
    column_statistics<<<columns, block>>>(h, mean, inv_std, B, N, eps);
    norm_softmax<<<B, THREADS>>>(h, mean, inv_std, gamma, beta, scale, y, N);
}
