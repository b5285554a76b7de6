// y = softmax over channels of the minimum over depth of conv3x3x3(x) + bias, no padding.
//
// A warp owns one pixel of the result, a lane one output channel: x is a broadcast, the
// minimum over depth is a running one, and the softmax is two warp reductions. More than
// 32 channels take several trips, each trip's minima waiting in the result itself.

#include "warp_max.cuh"
#include "warp_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int WARPS = 4;

__global__ void conv_min_softmax(const float* __restrict__ x, const float* __restrict__ weight,
                                 const float* __restrict__ bias, float* y, int CI, int CO, int D,
                                 int H, int W, int DO, int WO, int pixels) {
    const int lane = threadIdx.x;
    const int pixel = blockIdx.x * WARPS + threadIdx.y;
    if (pixel >= pixels) {
        return;
    }
    const float* corner = x + static_cast<long long>(blockIdx.y) * CI * D * H * W +
                          pixel / WO * W + pixel % WO;
    float* out = y + static_cast<long long>(blockIdx.y) * CO * pixels + pixel;

    float top = -INFINITY;
    for (int co = lane; co < CO; co += WARP) {
        float least = INFINITY;
        for (int d = 0; d < DO; ++d) {
            float sum = bias[co];
            for (int ci = 0; ci < CI; ++ci) {
                const float* in = corner + (static_cast<long long>(ci) * D + d) * H * W;
                const float* filter = weight + (co * CI + ci) * TAPS;
                #pragma unroll
                for (int tap = 0; tap < TAPS; ++tap) {
                    sum += in[(tap / (K * K) * H + tap / K % K) * W + tap % K] * filter[tap];
                }
            }
            least = fminf(least, sum);
        }
        out[static_cast<long long>(co) * pixels] = least;
        top = fmaxf(top, least);
    }
    top = warp_max(top);
    // A lane reads back only what it wrote itself.
    float total = 0.0f;
    for (int co = lane; co < CO; co += WARP) {
        total += expf(out[static_cast<long long>(co) * pixels] - top);
    }
    total = warp_sum(total);
    for (int co = lane; co < CO; co += WARP) {
        float* at = out + static_cast<long long>(co) * pixels;
        *at = expf(*at - top) / total;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int DO, int HO, int WO) {
    const int pixels = HO * WO;
    dim3 block(WARP, WARPS);
    dim3 grid((pixels + WARPS - 1) / WARPS, B);
    conv_min_softmax<<<grid, block>>>(x, weight, bias, y, CI, CO, D, H, W, DO, WO, pixels);
}
