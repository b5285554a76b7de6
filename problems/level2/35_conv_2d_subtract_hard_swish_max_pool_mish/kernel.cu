// y = mish(max pool 2x2 of hardswish(conv3x3(x) + bias - subtract)).
//
// A thread makes one pooled output: the four convolution results under it share a 4x4
// patch, which is loaded into registers once per channel. What the convolution makes is
// never stored.

#include "hard_swish.cuh"
#include "mish.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int POOL = 2;
static constexpr int PATCH = POOL + K - 1;
static constexpr int THREADS = 64;

__global__ void conv_pool_mish(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int H, int W, int PH, int PW, float subtract_value) {
    extern __shared__ float filter[];
    const int co = blockIdx.y;
    for (int i = threadIdx.x; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[co * CI * TAPS + i];
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= PH * PW) {
        return;
    }
    const int h0 = position / PW * POOL;
    const int w0 = position % PW * POOL;
    const float* in = x + (static_cast<long long>(blockIdx.z) * CI * H + h0) * W + w0;

    float acc[POOL][POOL] = {};
    for (int ci = 0; ci < CI; ++ci) {
        float patch[PATCH][PATCH];
        #pragma unroll
        for (int i = 0; i < PATCH; ++i) {
            #pragma unroll
            for (int j = 0; j < PATCH; ++j) {
                patch[i][j] = in[i * W + j];
            }
        }
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float w = filter[ci * TAPS + tap];
            #pragma unroll
            for (int i = 0; i < POOL; ++i) {
                #pragma unroll
                for (int j = 0; j < POOL; ++j) {
                    acc[i][j] += patch[i + tap / K][j + tap % K] * w;
                }
            }
        }
        in += H * W;
    }

    const float level = bias[co] - subtract_value;
    float best = -INFINITY;
    #pragma unroll
    for (int i = 0; i < POOL; ++i) {
        #pragma unroll
        for (int j = 0; j < POOL; ++j) {
            // HardSwish is not monotone: it comes before the maximum.
            best = fmaxf(best, hard_swish(acc[i][j] + level));
        }
    }
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    y[plane * (PH * PW) + position] = mish(best);
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int H, int W, int PH, int PW, float subtract_value) {
    dim3 grid((PH * PW + THREADS - 1) / THREADS, CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv_pool_mish<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, H, W, PH, PW,
                                              subtract_value);
}
