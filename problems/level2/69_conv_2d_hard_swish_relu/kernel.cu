// y = relu(hardswish(conv3x3(x) + bias)), no padding.
//
// The lanes of a warp are 32 output channels of the same positions, eight neighbours of a
// row a warp: x is a broadcast, and the filters, transposed while they are staged, are
// read side by side. The results are turned round in shared memory, so that the stores
// run along the row again.

#include "hard_swish.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int WARP = 32;
static constexpr int WARPS = 2;
static constexpr int RUN = 8;

__global__ void conv_channel_lanes(const float* __restrict__ x, const float* __restrict__ weight,
                                   const float* __restrict__ bias, float* __restrict__ y, int CI,
                                   int CO, int H, int W, int HO, int WO, int runs) {
    extern __shared__ float filters[];
    __shared__ float turned[WARPS][WARP][RUN + 1];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int co0 = blockIdx.y * WARP;
    const int terms = CI * TAPS;
    for (int i = warp * WARP + lane; i < terms * WARP; i += WARPS * WARP) {
        const int co = co0 + i / terms;
        filters[i % terms * WARP + i / terms] = co < CO ? weight[co * terms + i % terms] : 0.0f;
    }
    __syncthreads();

    // One run of a row per warp.
    const int run = blockIdx.x * WARPS + warp;
    if (run >= HO * runs) {
        return;
    }
    const int ho = run / runs;
    const int w0 = run % runs * RUN;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;

    float acc[RUN] = {};
    for (int ci = 0; ci < CI; ++ci) {
        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            const float* row = image + (static_cast<long long>(ci) * H + ho + kh) * W;
            float window[RUN + K - 1];
            #pragma unroll
            for (int i = 0; i < RUN + K - 1; ++i) {
                window[i] = w0 + i < W ? row[w0 + i] : 0.0f;
            }
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                const float w = filters[((ci * K + kh) * K + kw) * WARP + lane];
                #pragma unroll
                for (int i = 0; i < RUN; ++i) {
                    acc[i] += window[i + kw] * w;
                }
            }
        }
    }

    const float level = co0 + lane < CO ? bias[co0 + lane] : 0.0f;
    #pragma unroll
    for (int i = 0; i < RUN; ++i) {
        turned[warp][lane][i] = fmaxf(hard_swish(acc[i] + level), 0.0f);
    }
    __syncwarp();
    // Four channels at a time, eight neighbours each.
    const int i = lane % RUN;
    for (int o = lane / RUN; o < WARP; o += WARP / RUN) {
        if (co0 + o < CO && w0 + i < WO) {
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
            y[(plane * HO + ho) * WO + w0 + i] = turned[warp][o][i];
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int runs = (WO + RUN - 1) / RUN;
    dim3 block(WARP, WARPS);
    dim3 grid((HO * runs + WARPS - 1) / WARPS, (CO + WARP - 1) / WARP, B);
    const int shared = WARP * CI * TAPS * sizeof(float);
    conv_channel_lanes<<<grid, block, shared>>>(x, weight, bias, y, CI, CO, H, W, HO, WO, runs);
}
