// y = multiplier * mean over the image of transposed conv3x3(x) + bias, stride 2, padding 1,
// output padding 1.
//
// Under the mean only sums matter. Tap k puts input i at output 2 i - 1 + k, which is
// outside only for k = 0 and i = 0. So per plane four sums suffice: all, without the first row,
// without the first column, without both, each made of the elements it holds and none
// by subtraction. The rest is a small product of sums and taps.

#include "warp_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int KINDS = 4;
static constexpr int WARPS = 4;
static constexpr int THREADS = WARP * WARPS;

// Kinds: bit 0 leaves out the first column, bit 1 the first row.
__global__ void plane_sums(const float* __restrict__ x, float* __restrict__ sums, int planes,
                           int H, int W) {
    const int lane = threadIdx.x;
    const int plane = blockIdx.x * WARPS + threadIdx.y;
    if (plane >= planes) {
        return;
    }
    const float* in = x + static_cast<long long>(plane) * H * W;

    float corner = 0.0f;
    float first_row = 0.0f;
    float first_column = 0.0f;
    float inner = 0.0f;
    for (int i = lane; i < H * W; i += WARP) {
        const float v = in[i];
        const bool top = i < W;
        const bool left = i % W == 0;
        corner += top && left ? v : 0.0f;
        first_row += top && !left ? v : 0.0f;
        first_column += !top && left ? v : 0.0f;
        inner += !top && !left ? v : 0.0f;
    }
    corner = warp_sum(corner);
    first_row = warp_sum(first_row);
    first_column = warp_sum(first_column);
    inner = warp_sum(inner);
    if (lane == 0) {
        float* out = sums + static_cast<long long>(plane) * KINDS;
        out[0] = inner + first_column + first_row + corner;
        out[1] = inner + first_row;
        out[2] = inner + first_column;
        out[3] = inner;
    }
}

__global__ void channel_means(const float* __restrict__ sums, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int B,
                              int CI, int CO, int outputs, float multiplier) {
    const int i = blockIdx.x * THREADS + threadIdx.y * WARP + threadIdx.x;
    if (i >= B * CO) {
        return;
    }
    const int n = i / CO;
    const int co = i % CO;
    float total = 0.0f;
    for (int ci = 0; ci < CI; ++ci) {
        const float* s = sums + (static_cast<long long>(n) * CI + ci) * KINDS;
        const float* taps = weight + (ci * CO + co) * TAPS;
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const int kind = (tap / K == 0 ? 2 : 0) + (tap % K == 0 ? 1 : 0);
            total += s[kind] * taps[tap];
        }
    }
    y[i] = (total / outputs + bias[co]) * multiplier;
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO, float multiplier) {
    const int planes = B * CI;
    float* sums = scratch<float>(static_cast<long long>(planes) * KINDS);
    dim3 block(WARP, WARPS);
    plane_sums<<<(planes + WARPS - 1) / WARPS, block>>>(x, sums, planes, H, W);
    channel_means<<<(B * CO + THREADS - 1) / THREADS, block>>>(sums, weight, bias, y, B, CI, CO,
                                                               HO * WO, multiplier);
}
