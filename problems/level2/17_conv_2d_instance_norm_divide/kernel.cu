// y = instance norm(conv3x3(x) + bias) / divisor, no padding, no affine weights.
//
// The convolution leaves its result in y, one output channel per block row, the channel's
// filter streaming through shared memory eight input channels at a time. A block per plane
// then finds mean and variance in two passes and rewrites the plane.

#include "block_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;
static constexpr int CI_STEP = 8;

__global__ void conv_plane(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ y, int CI, int CO,
                           int H, int W, int HO, int WO) {
    __shared__ float taps[CI_STEP * TAPS];
    const int tid = threadIdx.x;
    const int co = blockIdx.y;
    const int position = blockIdx.x * THREADS + tid;
    const bool inside = position < HO * WO;
    const int ho = inside ? position / WO : 0;
    const int wo = inside ? position % WO : 0;
    const float* corner = x + (static_cast<long long>(blockIdx.z) * CI * H + ho) * W + wo;

    float sum = 0.0f;
    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        const int channels = min(CI_STEP, CI - ci0);
        if (tid < channels * TAPS) {
            taps[tid] = weight[(co * CI + ci0) * TAPS + tid];
        }
        __syncthreads();
        if (inside) {
            for (int c = 0; c < channels; ++c) {
                #pragma unroll
                for (int tap = 0; tap < TAPS; ++tap) {
                    sum += corner[tap / K * W + tap % K] * taps[c * TAPS + tap];
                }
                corner += H * W;
            }
        }
        __syncthreads();
    }
    if (inside) {
        const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
        y[plane * (HO * WO) + position] = sum + bias[co];
    }
}

__global__ void norm_plane(float* y, int pixels, float eps, float divide_by) {
    __shared__ float mean_parts[WARPS];
    __shared__ float variance_parts[WARPS];
    float* plane = y + static_cast<long long>(blockIdx.x) * pixels;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < pixels; i += THREADS) {
        sum += plane[i];
    }
    const float mean = block_sum<WARPS>(sum, mean_parts) / pixels;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < pixels; i += THREADS) {
        const float d = plane[i] - mean;
        squares += d * d;
    }
    const float variance = block_sum<WARPS>(squares, variance_parts) / pixels;
    const float factor = rsqrtf(variance + eps) / divide_by;
    for (int i = threadIdx.x; i < pixels; i += THREADS) {
        plane[i] = (plane[i] - mean) * factor;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int H, int W, int HO, int WO, float eps, float divide_by) {
    dim3 grid((HO * WO + THREADS - 1) / THREADS, CO, B);
    conv_plane<<<grid, THREADS>>>(x, weight, bias, y, CI, CO, H, W, HO, WO);
    norm_plane<<<B * CO, THREADS>>>(y, HO * WO, eps, divide_by);
}
