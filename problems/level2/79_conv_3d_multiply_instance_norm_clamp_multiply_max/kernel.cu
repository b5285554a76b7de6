// y = max over channels of clamp(instance norm((conv3x3x3(x) + bias) * multiplier)) *
// multiplier.
//
// The scaled convolution is stored, four channels a thread. A warp per image and channel
// finds the volume's moments in two passes, and a thread per position walks through the
// channels, normalising, clamping and keeping the largest product.

#include "warp_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 4;
static constexpr int WARPS = 4;

__global__ void conv_multiply(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias,
                              const float* __restrict__ multiplier, float* __restrict__ h,
                              int CI, int CO, int D, int H, int W, int HO, int WO,
                              int positions) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    const int co0 = blockIdx.y * CO_TILE;
    const int channels = min(CO_TILE, CO - co0);
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const float* corner =
        x + ((static_cast<long long>(blockIdx.z) * CI * D + dz) * H + ho) * W + wo;
    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* filter = weight + (co0 * CI + ci) * TAPS;
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = corner[(tap / (K * K) * H + tap / K % K) * W + tap % K];
            #pragma unroll
            for (int o = 0; o < CO_TILE; ++o) {
                if (o < channels) {
                    acc[o] += v * filter[o * CI * TAPS + tap];
                }
            }
        }
        corner += D * H * W;
    }
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        if (o < channels) {
            const int co = co0 + o;
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
            h[plane * positions + position] = (acc[o] + bias[co]) * multiplier[co];
        }
    }
}

__global__ void volume_moments(const float* __restrict__ h, float* __restrict__ mean,
                               float* __restrict__ inv_std, int volumes, int positions,
                               float eps) {
    const int lane = threadIdx.x;
    const int volume = blockIdx.x * WARPS + threadIdx.y;
    if (volume >= volumes) {
        return;
    }
    const float* values = h + static_cast<long long>(volume) * positions;
    float sum = 0.0f;
    for (int i = lane; i < positions; i += WARP) {
        sum += values[i];
    }
    const float average = warp_sum(sum) / positions;
    float squares = 0.0f;
    for (int i = lane; i < positions; i += WARP) {
        const float d = values[i] - average;
        squares += d * d;
    }
    squares = warp_sum(squares);
    if (lane == 0) {
        mean[volume] = average;
        inv_std[volume] = rsqrtf(squares / positions + eps);
    }
}

__global__ void norm_clamp_max(const float* __restrict__ h, const float* __restrict__ mean,
                               const float* __restrict__ inv_std,
                               const float* __restrict__ multiplier, float* __restrict__ y,
                               int CO, int positions, float clamp_min, float clamp_max) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    float best = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        const int volume = blockIdx.y * CO + co;
        const float v = h[static_cast<long long>(volume) * positions + position];
        const float normed = (v - mean[volume]) * inv_std[volume];
        const float clamped = fminf(fmaxf(normed, clamp_min), clamp_max);
        best = fmaxf(best, clamped * multiplier[co]);
    }
    y[static_cast<long long>(blockIdx.y) * positions + position] = best;
}

void launch(const float* x, const float* weight, const float* bias, const float* multiplier,
            float* y, int B, int CI, int CO, int D, int H, int W, int DO, int HO, int WO,
            float clamp_min, float clamp_max, float eps) {
    const int positions = DO * HO * WO;
    const int blocks = (positions + THREADS - 1) / THREADS;
    const int volumes = B * CO;
    float* h = scratch<float>(static_cast<long long>(volumes) * positions);
    float* mean = scratch<float>(volumes);
    float* inv_std = scratch<float>(volumes);
    dim3 grid(blocks, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_multiply<<<grid, THREADS>>>(x, weight, bias, multiplier, h, CI, CO, D, H, W, HO, WO,
                                     positions);
    dim3 warps(WARP, WARPS);
    volume_moments<<<(volumes + WARPS - 1) / WARPS, warps>>>(h, mean, inv_std, volumes, positions,
                                                             eps);
    dim3 position_grid(blocks, B);
    norm_clamp_max<<<position_grid, THREADS>>>(h, mean, inv_std, multiplier, y, CO, positions,
                                               clamp_min, clamp_max);
}
