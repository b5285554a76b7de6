// y = scale * softmax over the volume of clamp(transposed conv3x3x3(average pool 2x2x2 of x) +
// bias), stride 2, padding 1, output padding 1.
//
// Three kernels: the pooled copy, eight clamped outputs per pooled voxel left in y, and a
// block per volume that turns it into its softmax. A volume has eight values per voxel, so
// it is always a whole number of float4.

#include "warp_max.cuh"
#include "warp_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;

__global__ void average_pool(const float* __restrict__ x, float* __restrict__ pooled, int D,
                             int H, int W, int PD, int PH, int PW) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int volume = PD * PH * PW;
    if (i >= volume) {
        return;
    }
    const int w = 2 * (i % PW);
    const int h = 2 * (i / PW % PH);
    const int d = 2 * (i / (PW * PH));
    const float* in = x + ((static_cast<long long>(blockIdx.y) * D + d) * H + h) * W + w;
    float sum = 0.0f;
    #pragma unroll
    for (int q = 0; q < 8; ++q) {
        sum += in[(q / 4 * H + q / 2 % 2) * W + q % 2];
    }
    pooled[static_cast<long long>(blockIdx.y) * volume + i] = sum * 0.125f;
}

__global__ void conv_clamp(const float* __restrict__ pooled, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ y, int CI, int CO,
                           int PD, int PH, int PW, float clamp_min, float clamp_max) {
    const int voxel = blockIdx.x * THREADS + threadIdx.x;
    const int volume = PD * PH * PW;
    if (voxel >= volume) {
        return;
    }
    const int co = blockIdx.y;
    const int w = voxel % PW;
    const int h = voxel / PW % PH;
    const int d = voxel / (PW * PH);

    float acc[8] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* in =
            pooled + (static_cast<long long>(blockIdx.z) * CI + ci) * volume + voxel;
        const float* taps = weight + (ci * CO + co) * TAPS;
        // The voxel (n = 0) and its neighbours further on along each axis.
        #pragma unroll
        for (int n = 0; n < 8; ++n) {
            const int nd = n / 4;
            const int nh = n / 2 % 2;
            const int nw = n % 2;
            const bool exists = d + nd < PD && h + nh < PH && w + nw < PW;
            const float v = exists ? in[(nd * PH + nh) * PW + nw] : 0.0f;
            #pragma unroll
            for (int q = 0; q < 8; ++q) {
                // Tap along an axis: 1 for an even output, 2 or 0 for an odd one.
                const int kd = q / 4 + 1 - 2 * nd;
                const int kh = q / 2 % 2 + 1 - 2 * nh;
                const int kw = q % 2 + 1 - 2 * nw;
                if (kd >= 0 && kh >= 0 && kw >= 0) {
                    acc[q] += v * taps[(kd * K + kh) * K + kw];
                }
            }
        }
    }
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    #pragma unroll
    for (int q = 0; q < 8; ++q) {
        const long long slice = plane * (2 * PD) + 2 * d + q / 4;
        const long long row = slice * (2 * PH) + 2 * h + q / 2 % 2;
        y[row * (2 * PW) + 2 * w + q % 2] =
            fminf(fmaxf(acc[q] + bias[co], clamp_min), clamp_max);
    }
}

__global__ void softmax_volume(float* y, const float* __restrict__ scale, int CO, int vectors) {
    __shared__ float tops[WARPS];
    __shared__ float sums[WARPS];
    const int tid = threadIdx.x;
    float4* values = reinterpret_cast<float4*>(y) + static_cast<long long>(blockIdx.x) * vectors;

    float top = -INFINITY;
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 v = values[i];
        top = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    top = warp_max(top);
    if (tid % WARP == 0) {
        tops[tid / WARP] = top;
    }
    __syncthreads();
    top = fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3]));

    float sum = 0.0f;
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 v = values[i];
        sum += expf(v.x - top) + expf(v.y - top) + expf(v.z - top) + expf(v.w - top);
    }
    sum = warp_sum(sum);
    if (tid % WARP == 0) {
        sums[tid / WARP] = sum;
    }
    __syncthreads();
    const float factor = scale[blockIdx.x % CO] / (sums[0] + sums[1] + sums[2] + sums[3]);
    for (int i = tid; i < vectors; i += THREADS) {
        float4 v = values[i];
        v.x = expf(v.x - top) * factor;
        v.y = expf(v.y - top) * factor;
        v.z = expf(v.z - top) * factor;
        v.w = expf(v.w - top) * factor;
        values[i] = v;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
            int B, int CI, int CO, int D, int H, int W, int PD, int PH, int PW, float clamp_min,
            float clamp_max) {
    const int volume = PD * PH * PW;
    const int blocks = (volume + THREADS - 1) / THREADS;
    float* pooled = scratch<float>(static_cast<long long>(B) * CI * volume);
    dim3 pool_grid(blocks, B * CI);
    average_pool<<<pool_grid, THREADS>>>(x, pooled, D, H, W, PD, PH, PW);
    dim3 grid(blocks, CO, B);
    conv_clamp<<<grid, THREADS>>>(pooled, weight, bias, y, CI, CO, PD, PH, PW, clamp_min,
                                  clamp_max);
    softmax_volume<<<B * CO, THREADS>>>(y, scale, CO, 2 * volume);
}
