// y = gelu(layer norm over the width of transposed conv4x4x4(x) + bias) * scaling, stride 2,
// padding 1.
//
// A warp makes one output row. Along each axis an output meets two taps, k0 and k0 + 2, of
// inputs i0 and i0 - 1. The lanes leave the row in y, find its mean and deviation by shuffles
// and each rewrites its own entries.

#include "gelu.cuh"
#include "warp_sum.cuh"

static constexpr int K = 4;
static constexpr int TAPS = K * K * K;
static constexpr int WARPS = 4;

__global__ void conv_row_norm_gelu(const float* __restrict__ x, const float* __restrict__ weight,
                                   const float* __restrict__ bias,
                                   const float* __restrict__ gamma,
                                   const float* __restrict__ beta, float* y, int CI, int CO,
                                   int D, int H, int W, int DO, int HO, int WO, float eps,
                                   float scaling_factor) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * WARPS + threadIdx.y;
    if (row >= DO * HO) {
        return;
    }
    const int dz = row / HO;
    const int ho = row % HO;
    const int co = blockIdx.y;
    const int kd0 = (dz + 1) % 2;
    const int kh0 = (ho + 1) % 2;
    const int d0 = (dz + 1 - kd0) / 2;
    const int h0 = (ho + 1 - kh0) / 2;
    const int volume = D * H * W;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    float* out = y + (plane * DO * HO + row) * WO;

    float sum = 0.0f;
    for (int wo = lane; wo < WO; wo += WARP) {
        const int kw0 = (wo + 1) % 2;
        const int w0 = (wo + 1 - kw0) / 2;
        float h = bias[co];
        #pragma unroll
        for (int q = 0; q < 8; ++q) {
            const int d = d0 - q / 4;
            const int r = h0 - q / 2 % 2;
            const int c = w0 - q % 2;
            if (d < 0 || d >= D || r < 0 || r >= H || c < 0 || c >= W) {
                continue;
            }
            const int kd = kd0 + q / 4 * 2;
            const int kh = kh0 + q / 2 % 2 * 2;
            const int kw = kw0 + q % 2 * 2;
            const float* in = image + (d * H + r) * W + c;
            const float* tap = weight + co * TAPS + (kd * K + kh) * K + kw;
            for (int ci = 0; ci < CI; ++ci) {
                h += in[ci * volume] * tap[ci * CO * TAPS];
            }
        }
        out[wo] = h;
        sum += h;
    }
    const float mean = warp_sum(sum) / WO;
    float squares = 0.0f;
    for (int wo = lane; wo < WO; wo += WARP) {
        const float d = out[wo] - mean;
        squares += d * d;
    }
    const float inv_std = rsqrtf(warp_sum(squares) / WO + eps);
    for (int wo = lane; wo < WO; wo += WARP) {
        const float v = (out[wo] - mean) * inv_std * gamma[wo] + beta[wo];
        out[wo] = gelu(v) * scaling_factor;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int CO, int D, int H, int W, int DO,
            int HO, int WO, float eps, float scaling_factor) {
    dim3 block(WARP, WARPS);
    dim3 grid((DO * HO + WARPS - 1) / WARPS, CO, B);
    conv_row_norm_gelu<<<grid, block>>>(x, weight, bias, gamma, beta, y, CI, CO, D, H, W, DO, HO,
                                        WO, eps, scaling_factor);
}
