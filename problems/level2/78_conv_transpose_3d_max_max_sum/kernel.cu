// y = sum over channels of max pool 6x6x6 of transposed conv5x5x5(x) + bias, stride 2, padding
// 2; pools of 2 and of 3 are one of 6.
//
// A block stands for one pool of one channel. Its threads stride over the 216 results below
// it, each made from the taps of its parity, two or three an axis; warps and then the block
// find the maximum. The channels of a pool are summed by a second kernel in a fixed order.

#include "warp_max.cuh"

static constexpr int K = 5;
static constexpr int TAPS = K * K * K;
static constexpr int PAD = 2;
static constexpr int POOL = 6;
static constexpr int SIDE = POOL / 2;
static constexpr int CELLS = POOL * POOL * POOL;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;

__global__ void conv_pool(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ pooled, int CI,
                          int CO, int D, int H, int W, int PH, int PW) {
    __shared__ float tops[WARPS];
    const int tid = threadIdx.x;
    const int co = blockIdx.y;
    const int pw = blockIdx.x % PW;
    const int ph = blockIdx.x / PW % PH;
    const int pd = blockIdx.x / (PW * PH);
    const int volume = D * H * W;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;

    float best = -INFINITY;
    for (int cell = tid; cell < CELLS; cell += THREADS) {
        // Cells of one parity class follow each other, so that warps rarely mix classes.
        const int odd = cell / (SIDE * SIDE * SIDE);
        const int within = cell % (SIDE * SIDE * SIDE);
        // Output o meets input (o + PAD - k) / 2 through the taps k of its parity.
        const int dz = pd * POOL + 2 * (within / (SIDE * SIDE)) + odd / 4 + PAD;
        const int ho = ph * POOL + 2 * (within / SIDE % SIDE) + odd / 2 % 2 + PAD;
        const int wo = pw * POOL + 2 * (within % SIDE) + odd % 2 + PAD;
        float sum = bias[co];
        for (int kd = dz % 2; kd < K; kd += 2) {
            const int d = (dz - kd) / 2;
            if (d < 0 || d >= D) {
                continue;
            }
            for (int kh = ho % 2; kh < K; kh += 2) {
                const int h = (ho - kh) / 2;
                if (h < 0 || h >= H) {
                    continue;
                }
                for (int kw = wo % 2; kw < K; kw += 2) {
                    const int w = (wo - kw) / 2;
                    if (w < 0 || w >= W) {
                        continue;
                    }
                    const float* in = image + (d * H + h) * W + w;
                    const float* tap = weight + co * TAPS + (kd * K + kh) * K + kw;
                    for (int ci = 0; ci < CI; ++ci) {
                        sum += in[ci * volume] * tap[ci * CO * TAPS];
                    }
                }
            }
        }
        best = fmaxf(best, sum);
    }
    best = warp_max(best);
    if (tid % WARP == 0) {
        tops[tid / WARP] = best;
    }
    __syncthreads();
    if (tid == 0) {
        const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
        pooled[plane * gridDim.x + blockIdx.x] =
            fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3]));
    }
}

__global__ void sum_channels(const float* __restrict__ pooled, float* __restrict__ y, int CO,
                             int pools) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= pools) {
        return;
    }
    const float* in = pooled + static_cast<long long>(blockIdx.y) * CO * pools + pool;
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        sum += in[co * pools];
    }
    y[static_cast<long long>(blockIdx.y) * pools + pool] = sum;
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int PD, int PH, int PW) {
    const int pools = PD * PH * PW;
    float* pooled = scratch<float>(static_cast<long long>(B) * CO * pools);
    dim3 grid(pools, CO, B);
    conv_pool<<<grid, THREADS>>>(x, weight, bias, pooled, CI, CO, D, H, W, PH, PW);
    dim3 sum_grid((pools + THREADS - 1) / THREADS, B);
    sum_channels<<<sum_grid, THREADS>>>(pooled, y, CO, pools);
}
