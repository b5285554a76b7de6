// y = 10 * logsumexp over channels of (mean over the image of transposed conv3x3(x) +
// conv_bias + bias), stride 1, no padding.
//
// Without padding every input meets every tap exactly once, so the sum over a plane of
// outputs is the sum over input channels of (sum of the input plane) * (sum of the taps).
// Three kernels: plane sums, tap sums, and one warp per image for the rest.

#include "max_sum.cuh"
#include "warp_sum_down.cuh"

static constexpr int TAPS = 9;
static constexpr int THREADS = 128;

__global__ void plane_sums(const float* __restrict__ x, float* __restrict__ sums, int pixels) {
    __shared__ float parts[THREADS / WARP];
    const float* plane = x + static_cast<long long>(blockIdx.x) * pixels;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < pixels; i += THREADS) {
        sum += plane[i];
    }
    sum = warp_sum_down(sum);
    if (threadIdx.x % WARP == 0) {
        parts[threadIdx.x / WARP] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        #pragma unroll
        for (int i = 0; i < THREADS / WARP; ++i) {
            total += parts[i];
        }
        sums[blockIdx.x] = total;
    }
}

__global__ void tap_sums(const float* __restrict__ weight, float* __restrict__ sums, int filters) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < filters) {
        const float* taps = weight + static_cast<long long>(i) * TAPS;
        float sum = 0.0f;
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            sum += taps[tap];
        }
        sums[i] = sum;
    }
}

__global__ void logsumexp_channels(const float* __restrict__ planes,
                                   const float* __restrict__ filters,
                                   const float* __restrict__ conv_bias,
                                   const float* __restrict__ bias, float* __restrict__ y, int CI,
                                   int CO, int outputs) {
    const int lane = threadIdx.x;
    const float* image = planes + static_cast<long long>(blockIdx.x) * CI;

    // Finite, so that merging with an idle lane makes no NaN.
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int co = lane; co < CO; co += WARP) {
        float total = 0.0f;
        for (int ci = 0; ci < CI; ++ci) {
            total += image[ci] * filters[ci * CO + co];
        }
        const float h = total / outputs + conv_bias[co] + bias[co];
        const float higher = fmaxf(top, h);
        sum = sum * expf(top - higher) + expf(h - higher);
        top = higher;
    }
    warp_merge_max_sum(top, sum);
    if (lane == 0) {
        y[blockIdx.x] = (top + logf(sum)) * 10.0f;
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int filters = CI * CO;
    float* planes = scratch<float>(B * CI);
    float* summed = scratch<float>(filters);
    plane_sums<<<B * CI, THREADS>>>(x, planes, H * W);
    tap_sums<<<(filters + THREADS - 1) / THREADS, THREADS>>>(weight, summed, filters);
    logsumexp_channels<<<B, WARP>>>(planes, summed, conv_bias, bias, y, CI, CO, HO * WO);
}
