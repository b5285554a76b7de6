// y[n] = mean over everything of group norm(conv3x3x3(x) + bias), three channels a group.
//
// The normalised volume is never made: the mean of a normalised channel follows from the
// channel's mean and its group's moments. Kernels: the convolution, moments of every
// channel by a block each, and one warp per image for groups and the final mean.

#include "tree_total.cuh"
#include "warp_sum_down.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int GROUP = 3;

// The three channels of a group per thread.
__global__ void conv_group(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ h, int CI, int CO,
                           int D, int H, int W, int HO, int WO, int size) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= size) {
        return;
    }
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const int co0 = blockIdx.y * GROUP;
    float acc[GROUP] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const long long volume = static_cast<long long>(blockIdx.z) * CI + ci;
        const float* corner = x + ((volume * D + dz) * H + ho) * W + wo;
        const float* filter = weight + (co0 * CI + ci) * TAPS;
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = corner[(tap / (K * K) * H + tap / K % K) * W + tap % K];
            #pragma unroll
            for (int o = 0; o < GROUP; ++o) {
                acc[o] += v * filter[o * CI * TAPS + tap];
            }
        }
    }
    #pragma unroll
    for (int o = 0; o < GROUP; ++o) {
        const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
        h[plane * size + position] = acc[o] + bias[co0 + o];
    }
}

__global__ void channel_moments(const float* __restrict__ h, float* __restrict__ means,
                                float* __restrict__ m2s, int size) {
    __shared__ float sums[THREADS];
    const float* values = h + static_cast<long long>(blockIdx.x) * size;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        sum += values[i];
    }
    const float mean = tree_total<THREADS>(sums, sum) / size;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const float d = values[i] - mean;
        squares += d * d;
    }
    squares = tree_total<THREADS>(sums, squares);
    if (threadIdx.x == 0) {
        means[blockIdx.x] = mean;
        m2s[blockIdx.x] = squares;
    }
}

__global__ void mean_of_norm(const float* __restrict__ means, const float* __restrict__ m2s,
                             const float* __restrict__ gamma, const float* __restrict__ beta,
                             float* __restrict__ y, int G, int size, float eps) {
    const int lane = threadIdx.x;
    const int first = blockIdx.x * G * GROUP;
    float sum = 0.0f;
    for (int g = lane; g < G; g += WARP) {
        const float* m = means + first + g * GROUP;
        const float* s = m2s + first + g * GROUP;
        const float mean = (m[0] + m[1] + m[2]) / GROUP;
        float variance = 0.0f;
        #pragma unroll
        for (int o = 0; o < GROUP; ++o) {
            const float d = m[o] - mean;
            variance += s[o] / size + d * d;
        }
        const float inv_std = rsqrtf(variance / GROUP + eps);
        #pragma unroll
        for (int o = 0; o < GROUP; ++o) {
            const int co = g * GROUP + o;
            sum += (m[o] - mean) * inv_std * gamma[co] + beta[co];
        }
    }
    sum = warp_sum_down(sum);
    if (lane == 0) {
        y[blockIdx.x] = sum / (G * GROUP);
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int G, int CO, int D, int H, int W,
            int DO, int HO, int WO, float eps) {
    const int size = DO * HO * WO;
    float* h = scratch<float>(static_cast<long long>(B) * CO * size);
    float* means = scratch<float>(B * CO);
    float* m2s = scratch<float>(B * CO);
    dim3 grid((size + THREADS - 1) / THREADS, G, B);
    conv_group<<<grid, THREADS>>>(x, weight, bias, h, CI, CO, D, H, W, HO, WO, size);
    channel_moments<<<B * CO, THREADS>>>(h, means, m2s, size);
    mean_of_norm<<<B, WARP>>>(means, m2s, gamma, beta, y, G, size, eps);
}
