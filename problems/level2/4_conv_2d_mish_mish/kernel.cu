// y = mish(mish(conv3x3(x) + bias)), no padding.
//
// The filters of eight output channels, all input channels of them, are staged in shared
// memory once. After that single barrier every thread runs on its own: a load of x, eight
// taps side by side, eight multiply-adds.

#include "mish.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 8;

__global__ void conv_mish_mish(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int H, int W, int HO, int WO) {
    extern __shared__ float filters[];

    const int co0 = blockIdx.y * CO_TILE;
    const int terms = CI * TAPS;
    for (int i = threadIdx.x; i < CO_TILE * terms; i += THREADS) {
        const int o = i / terms;
        // Channels innermost: a thread's eight taps lie side by side.
        filters[i % terms * CO_TILE + o] = co0 + o < CO ? weight[co0 * terms + i] : 0.0f;
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= HO * WO) {
        return;
    }
    const int ho = position / WO;
    const int wo = position % WO;
    const float* corner = x + (static_cast<long long>(blockIdx.z) * CI * H + ho) * W + wo;

    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = corner[tap / K * W + tap % K];
            const float* w = filters + (ci * TAPS + tap) * CO_TILE;
            #pragma unroll
            for (int o = 0; o < CO_TILE; ++o) {
                acc[o] += v * w[o];
            }
        }
        corner += H * W;
    }

    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        const int co = co0 + o;
        if (co < CO) {
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
            y[plane * (HO * WO) + position] = mish(mish(acc[o] + bias[co]));
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int shared = CO_TILE * CI * TAPS * sizeof(float);
    dim3 grid((HO * WO + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_mish_mish<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, H, W, HO, WO);
}
