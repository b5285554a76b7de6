// y = max pool 4x4x4 of softmax over channels of conv3x3x3(x) + bias; two pools of 2 are one
// of 4.
//
// A block of 64 threads stands for one pooled output: every thread makes all channels of one
// of the 64 positions below it, in its own column of shared memory, and their softmax.
// Then the block's two warps take the maximum of each channel by shuffles.

#include "warp_max.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int POOL = 4;
static constexpr int THREADS = POOL * POOL * POOL;

__global__ void conv_softmax_pool(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float* __restrict__ y, int CI,
                                  int CO, int D, int H, int W, int PD, int PH, int PW) {
    extern __shared__ float logits[];
    const int tid = threadIdx.x;
    const int pw = blockIdx.x % PW;
    const int ph = blockIdx.x / PW % PH;
    const int pd = blockIdx.x / (PW * PH);
    const int d = pd * POOL + tid / (POOL * POOL);
    const int h = ph * POOL + tid / POOL % POOL;
    const int w = pw * POOL + tid % POOL;
    const float* corner =
        x + ((static_cast<long long>(blockIdx.y) * CI * D + d) * H + h) * W + w;

    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        float sum = bias[co];
        const float* in = corner;
        const float* filter = weight + co * CI * TAPS;
        for (int ci = 0; ci < CI; ++ci) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                sum += in[(tap / (K * K) * H + tap / K % K) * W + tap % K] * filter[tap];
            }
            in += D * H * W;
            filter += TAPS;
        }
        logits[co * THREADS + tid] = sum;
        top = fmaxf(top, sum);
    }
    float total = 0.0f;
    for (int co = 0; co < CO; ++co) {
        const float e = expf(logits[co * THREADS + tid] - top);
        logits[co * THREADS + tid] = e;
        total += e;
    }
    for (int co = 0; co < CO; ++co) {
        logits[co * THREADS + tid] /= total;
    }
    __syncthreads();

    // Channels take turns between the two warps; a lane looks at two positions.
    const int lane = tid % WARP;
    for (int co = tid / WARP; co < CO; co += THREADS / WARP) {
        float best = fmaxf(logits[co * THREADS + lane], logits[co * THREADS + WARP + lane]);
        best = warp_max(best);
        if (lane == 0) {
            const long long plane = static_cast<long long>(blockIdx.y) * CO + co;
            y[plane * gridDim.x + blockIdx.x] = best;
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int PD, int PH, int PW) {
    dim3 grid(PD * PH * PW, B);
    const int shared = CO * THREADS * sizeof(float);
    conv_softmax_pool<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, D, H, W, PD, PH, PW);
}
