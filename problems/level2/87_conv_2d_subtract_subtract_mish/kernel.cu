// y = mish(conv3x3(x) + bias - first - second), no padding.
//
// A block makes 32 positions of four output channels. Its four warps share the input
// channels out, each keeps partial sums of all four outputs, and after one barrier every
// warp adds up the partial sums of one output channel.

#include "mish.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int WARP = 32;
static constexpr int WARPS = 4;

__global__ void conv_split_channels(const float* __restrict__ x,
                                    const float* __restrict__ weight,
                                    const float* __restrict__ bias, float* __restrict__ y,
                                    int CI, int CO, int H, int W, int HO, int WO,
                                    float subtract_value_1, float subtract_value_2) {
    __shared__ float partial[WARPS][WARPS][WARP];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int pixels = HO * WO;
    const int position = blockIdx.x * WARP + lane;
    const int co0 = blockIdx.y * WARPS;
    const bool inside = position < pixels;
    const int at = inside ? position : 0;
    const float* corner =
        x + (static_cast<long long>(blockIdx.z) * CI * H + at / WO) * W + at % WO;

    float acc[WARPS] = {};
    for (int ci = warp; ci < CI; ci += WARPS) {
        const float* in = corner + static_cast<long long>(ci) * H * W;
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = in[tap / K * W + tap % K];
            #pragma unroll
            for (int o = 0; o < WARPS; ++o) {
                const int co = min(co0 + o, CO - 1);
                acc[o] += v * weight[(co * CI + ci) * TAPS + tap];
            }
        }
    }
    #pragma unroll
    for (int o = 0; o < WARPS; ++o) {
        partial[warp][o][lane] = acc[o];
    }
    __syncthreads();

    const int co = co0 + warp;
    if (inside && co < CO) {
        float h = bias[co];
        #pragma unroll
        for (int i = 0; i < WARPS; ++i) {
            h += partial[i][warp][lane];
        }
        h = h - subtract_value_1 - subtract_value_2;
        y[(static_cast<long long>(blockIdx.z) * CO + co) * pixels + position] = mish(h);
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int H, int W, int HO, int WO, float subtract_value_1,
            float subtract_value_2) {
    dim3 block(WARP, WARPS);
    dim3 grid((HO * WO + WARP - 1) / WARP, (CO + WARPS - 1) / WARPS, B);
    conv_split_channels<<<grid, block>>>(x, weight, bias, y, CI, CO, H, W, HO, WO,
                                         subtract_value_1, subtract_value_2);
}
