// y[n, co] = clamp(mean over the volume of max pool 2x2x2 of (transposed conv3x3x3(x) + bias) *
// scale, 0, 1), stride 2, padding 1.
//
// One block per image and channel. A thread takes one pool after the other: the eight
// results under it begin at one input voxel whose further neighbours all exist, since
// without output padding an incomplete pool is dropped. For every input channel the 27
// taps are read once per pool.

#include "warp_sum_down.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int WARPS = THREADS / WARP;

__global__ void conv_pool_mean(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int D, int H, int W, int PH, int PW, int pools,
                               float scale) {
    __shared__ float parts[WARPS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;

    float total = 0.0f;
    for (int pool = tid; pool < pools; pool += THREADS) {
        const int w = pool % PW;
        const int h = pool / PW % PH;
        const int d = pool / (PW * PH);
        const float* in = x + ((static_cast<long long>(blockIdx.y) * CI * D + d) * H + h) * W + w;
        float acc[8] = {};
        for (int ci = 0; ci < CI; ++ci) {
            const float* taps = weight + (ci * CO + co) * TAPS;
            #pragma unroll
            for (int n = 0; n < 8; ++n) {
                const int nd = n / 4;
                const int nh = n / 2 % 2;
                const int nw = n % 2;
                const float v = in[(nd * H + nh) * W + nw];
                #pragma unroll
                for (int q = 0; q < 8; ++q) {
                    // Tap along an axis: 1 for an even output, 2 or 0 for an odd one.
                    const int kd = q / 4 + 1 - 2 * nd;
                    const int kh = q / 2 % 2 + 1 - 2 * nh;
                    const int kw = q % 2 + 1 - 2 * nw;
                    if (kd >= 0 && kh >= 0 && kw >= 0) {
                        acc[q] += v * taps[(kd * K + kh) * K + kw];
                    }
                }
            }
            in += D * H * W;
        }
        float best = -INFINITY;
        #pragma unroll
        for (int q = 0; q < 8; ++q) {
            // The scale may be negative, so it comes before the maximum.
            best = fmaxf(best, (acc[q] + bias[co]) * scale);
        }
        total += best;
    }
    total = warp_sum_down(total);
    if (tid % WARP == 0) {
        parts[tid / WARP] = total;
    }
    __syncthreads();
    if (tid == 0) {
        const float mean = (parts[0] + parts[1]) / pools;
        y[static_cast<long long>(blockIdx.y) * CO + co] = fminf(fmaxf(mean, 0.0f), 1.0f);
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int PD, int PH, int PW, float scale) {
    dim3 grid(CO, B);
    conv_pool_mean<<<grid, THREADS>>>(x, weight, bias, y, CI, CO, D, H, W, PH, PW, PD * PH * PW,
                                      scale);
}
