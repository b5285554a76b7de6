// y = dropout(clamp(min(group norm(conv3x3x3(x) + bias), low), low, high)), two channels a
// group, the dropout's mask being given.
//
// The convolution leaves its result in y, both channels of a group per thread. A block per
// image and group finds the moments and applies norm, minimum, clamp, mask and scaling in
// one more pass over its values.

#include "tree_total.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int GROUP = 2;

__global__ void conv_group(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ y, int CI, int CO,
                           int D, int H, int W, int HO, int WO, int positions) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    const int co = blockIdx.y * GROUP;
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const float* corner =
        x + ((static_cast<long long>(blockIdx.z) * CI * D + dz) * H + ho) * W + wo;
    const float* w0 = weight + co * CI * TAPS;
    const float* w1 = w0 + CI * TAPS;
    float sum0 = bias[co];
    float sum1 = bias[co + 1];
    for (int ci = 0; ci < CI; ++ci) {
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = corner[(tap / (K * K) * H + tap / K % K) * W + tap % K];
            sum0 += v * w0[ci * TAPS + tap];
            sum1 += v * w1[ci * TAPS + tap];
        }
        corner += D * H * W;
    }
    float* out = y + (static_cast<long long>(blockIdx.z) * CO + co) * positions + position;
    out[0] = sum0;
    out[positions] = sum1;
}

__global__ void norm_clamp_dropout(float* y, const bool* __restrict__ mask,
                                   const float* __restrict__ gamma,
                                   const float* __restrict__ beta, int G, int positions,
                                   float min_value, float max_value, float keep, float eps) {
    __shared__ float sums[THREADS];
    const int size = GROUP * positions;
    const long long offset = static_cast<long long>(blockIdx.x) * size;
    float* values = y + offset;
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
    const float inv_std = rsqrtf(tree_total<THREADS>(sums, squares) / size + eps);
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const int co = blockIdx.x % G * GROUP + i / positions;
        float v = (values[i] - mean) * inv_std * gamma[co] + beta[co];
        v = fminf(v, min_value);
        v = fminf(fmaxf(v, min_value), max_value);
        values[i] = v * static_cast<float>(mask[offset + i]) / keep;
    }
}

void launch(const float* x, const bool* mask, const float* weight, const float* bias,
            const float* gamma, const float* beta, float* y, int B, int CI, int G, int CO, int D,
            int H, int W, int DO, int HO, int WO, float min_value, float max_value, float keep,
            float eps) {
    const int positions = DO * HO * WO;
    dim3 grid((positions + THREADS - 1) / THREADS, G, B);
    conv_group<<<grid, THREADS>>>(x, weight, bias, y, CI, CO, D, H, W, HO, WO, positions);
    norm_clamp_dropout<<<B * G, THREADS>>>(y, mask, gamma, beta, G, positions, min_value,
                                           max_value, keep, eps);
}
