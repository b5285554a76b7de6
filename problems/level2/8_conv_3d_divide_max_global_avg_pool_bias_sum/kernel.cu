// y = sum over channels of (mean over the volume of max pool 2x2x2 of (conv3x3x3(x) +
// conv_bias) / divisor) + bias.
//
// One block per image and channel. A thread makes a pool's eight convolution results side
// by side, slice by slice of the 4x4x4 patch below it, and adds their maximum to its sum.
// A warp per image adds the channels.

#include "warp_sum_down.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int PATCH = 4;
static constexpr int THREADS = 64;

__global__ void conv_pool_mean(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ conv_bias,
                               const float* __restrict__ bias, float* __restrict__ means, int CI,
                               int CO, int D, int H, int W, int PH, int PW, int pools,
                               float divisor) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;

    float total = 0.0f;
    for (int pool = tid; pool < pools; pool += THREADS) {
        const int w0 = 2 * (pool % PW);
        const int h0 = 2 * (pool / PW % PH);
        const int d0 = 2 * (pool / (PW * PH));
        const float* in =
            x + ((static_cast<long long>(blockIdx.y) * CI * D + d0) * H + h0) * W + w0;
        float acc[2][2][2] = {};
        for (int ci = 0; ci < CI; ++ci) {
            const float* filter = weight + (co * CI + ci) * TAPS;
            #pragma unroll
            for (int s = 0; s < PATCH; ++s) {
                float slice[PATCH][PATCH];
                #pragma unroll
                for (int i = 0; i < PATCH * PATCH; ++i) {
                    slice[i / PATCH][i % PATCH] = in[(s * H + i / PATCH) * W + i % PATCH];
                }
                #pragma unroll
                for (int od = 0; od < 2; ++od) {
                    const int kd = s - od;
                    if (kd < 0 || kd >= K) {
                        continue;
                    }
                    #pragma unroll
                    for (int tap = 0; tap < K * K; ++tap) {
                        const float v = filter[kd * K * K + tap];
                        #pragma unroll
                        for (int q = 0; q < 4; ++q) {
                            acc[od][q / 2][q % 2] += slice[q / 2 + tap / K][q % 2 + tap % K] * v;
                        }
                    }
                }
            }
            in += D * H * W;
        }
        float best = -INFINITY;
        #pragma unroll
        for (int q = 0; q < 8; ++q) {
            // The divisor may be negative, so it comes before the maximum.
            best = fmaxf(best, (acc[q / 4][q / 2 % 2][q % 2] + conv_bias[co]) / divisor);
        }
        total += best;
    }

    sums[tid] = total;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        means[static_cast<long long>(blockIdx.y) * CO + co] = sums[0] / pools + bias[co];
    }
}

__global__ void sum_channels(const float* __restrict__ means, float* __restrict__ y, int CO) {
    float sum = 0.0f;
    for (int co = threadIdx.x; co < CO; co += WARP) {
        sum += means[static_cast<long long>(blockIdx.x) * CO + co];
    }
    sum = warp_sum_down(sum);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sum;
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int D, int H, int W, int PD, int PH, int PW,
            float divisor) {
    float* means = scratch<float>(static_cast<long long>(B) * CO);
    dim3 grid(CO, B);
    conv_pool_mean<<<grid, THREADS>>>(x, weight, conv_bias, bias, means, CI, CO, D, H, W, PH, PW,
                                      PD * PH * PW, divisor);
    sum_channels<<<B, WARP>>>(means, y, CO);
}
