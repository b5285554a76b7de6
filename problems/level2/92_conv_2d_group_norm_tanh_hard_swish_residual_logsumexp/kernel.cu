// h = conv3x3(x) + bias; y = logsumexp over channels of h + hardswish(tanh(group norm(h))),
// four channels a group.
//
// h is needed three times, so it is stored. A warp per image and group finds the group's
// moments; then a thread per pixel walks through the channels with a running maximum and
// sum of exponentials, neighbours side by side at every step.

#include "hard_swish.cuh"
#include "warp_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int GROUP = 4;
static constexpr int WARPS = 4;

__global__ void conv_pairs(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ h, int CI, int CO,
                           int H, int W, int WO, int pixels) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= pixels) {
        return;
    }
    // The number of channels is a multiple of four: two at a time always exist.
    const int co = 2 * blockIdx.y;
    const float* in = x + (static_cast<long long>(blockIdx.z) * CI * H + p / WO) * W + p % WO;
    const float* w0 = weight + co * CI * TAPS;
    const float* w1 = w0 + CI * TAPS;
    float sum0 = bias[co];
    float sum1 = bias[co + 1];
    for (int ci = 0; ci < CI; ++ci) {
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = in[tap / K * W + tap % K];
            sum0 += v * w0[ci * TAPS + tap];
            sum1 += v * w1[ci * TAPS + tap];
        }
        in += H * W;
    }
    float* out = h + (static_cast<long long>(blockIdx.z) * CO + co) * pixels + p;
    out[0] = sum0;
    out[pixels] = sum1;
}

__global__ void group_moments(const float* __restrict__ h, float* __restrict__ mean,
                              float* __restrict__ inv_std, int groups, int size, float eps) {
    const int lane = threadIdx.x;
    const int g = blockIdx.x * WARPS + threadIdx.y;
    if (g >= groups) {
        return;
    }
    const float* values = h + static_cast<long long>(g) * size;
    float sum = 0.0f;
    for (int i = lane; i < size; i += WARP) {
        sum += values[i];
    }
    sum = warp_sum(sum);
    const float average = sum / size;
    float squares = 0.0f;
    for (int i = lane; i < size; i += WARP) {
        const float d = values[i] - average;
        squares += d * d;
    }
    squares = warp_sum(squares);
    if (lane == 0) {
        mean[g] = average;
        inv_std[g] = rsqrtf(squares / size + eps);
    }
}

__global__ void residual_logsumexp(const float* __restrict__ h, const float* __restrict__ mean,
                                   const float* __restrict__ inv_std,
                                   const float* __restrict__ gamma,
                                   const float* __restrict__ beta, float* __restrict__ y, int G,
                                   int CO, int pixels) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= pixels) {
        return;
    }
    const float* in = h + static_cast<long long>(blockIdx.y) * CO * pixels + p;
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        const int g = blockIdx.y * G + co / GROUP;
        const float v = in[static_cast<long long>(co) * pixels];
        const float t = tanhf((v - mean[g]) * inv_std[g] * gamma[co] + beta[co]);
        const float r = v + hard_swish(t);
        const float higher = fmaxf(top, r);
        sum = sum * expf(top - higher) + expf(r - higher);
        top = higher;
    }
    y[static_cast<long long>(blockIdx.y) * pixels + p] = top + logf(sum);
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int G, int CO, int H, int W, int HO,
            int WO, float eps) {
    const int pixels = HO * WO;
    const int blocks = (pixels + THREADS - 1) / THREADS;
    const int groups = B * G;
    float* h = scratch<float>(static_cast<long long>(B) * CO * pixels);
    float* mean = scratch<float>(groups);
    float* inv_std = scratch<float>(groups);
    dim3 grid(blocks, CO / 2, B);
    conv_pairs<<<grid, THREADS>>>(x, weight, bias, h, CI, CO, H, W, WO, pixels);
    dim3 warps(WARP, WARPS);
    group_moments<<<(groups + WARPS - 1) / WARPS, warps>>>(h, mean, inv_std, groups,
                                                           GROUP * pixels, eps);
    dim3 pixel_grid(blocks, B);
    residual_logsumexp<<<pixel_grid, THREADS>>>(h, mean, inv_std, gamma, beta, y, G, CO, pixels);
}
