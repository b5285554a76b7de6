// y = clamp(max pool 4x4 of scale * group norm(conv3x3(x) + bias), 0, 1), four channels a
// group.
//
// The convolution is made in tiles of 16x8 with its patch in shared memory and stored. A
// block per image and group finds mean and deviation, and the pooling applies the norm to
// what it reads: gamma or scale may be negative, so it cannot wait until after the maximum.

#include "block_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int TILE_W = 16;
static constexpr int TILE_H = 8;
static constexpr int PATCH_W = TILE_W + K - 1;
static constexpr int PATCH_H = TILE_H + K - 1;
static constexpr int THREADS = TILE_W * TILE_H;
static constexpr int GROUP = 4;
static constexpr int POOL = 4;
static constexpr int WARPS = THREADS / WARP;

__global__ void conv_group(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ h, int CI, int CO,
                           int H, int W, int HO, int WO, int tiles_w) {
    __shared__ float patch[PATCH_H][PATCH_W];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE_W + tx;
    const int col0 = blockIdx.x % tiles_w * TILE_W;
    const int row0 = blockIdx.x / tiles_w * TILE_H;
    const int co0 = blockIdx.y * GROUP;

    float acc[GROUP] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(blockIdx.z) * CI + ci) * H * W;
        for (int i = tid; i < PATCH_H * PATCH_W; i += THREADS) {
            const int r = row0 + i / PATCH_W;
            const int c = col0 + i % PATCH_W;
            patch[i / PATCH_W][i % PATCH_W] = (r < H && c < W) ? plane[r * W + c] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = patch[ty + tap / K][tx + tap % K];
            #pragma unroll
            for (int o = 0; o < GROUP; ++o) {
                acc[o] += v * weight[((co0 + o) * CI + ci) * TAPS + tap];
            }
        }
        __syncthreads();
    }
    const int ho = row0 + ty;
    const int wo = col0 + tx;
    if (ho < HO && wo < WO) {
        #pragma unroll
        for (int o = 0; o < GROUP; ++o) {
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
            h[(plane * HO + ho) * WO + wo] = acc[o] + bias[co0 + o];
        }
    }
}

__global__ void group_statistics(const float* __restrict__ h, float* __restrict__ mean,
                                 float* __restrict__ inv_std, int size, float eps) {
    __shared__ float mean_parts[WARPS];
    __shared__ float variance_parts[WARPS];
    const float* values = h + static_cast<long long>(blockIdx.x) * size;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        sum += values[i];
    }
    const float average = block_sum<WARPS>(sum, mean_parts) / size;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const float d = values[i] - average;
        squares += d * d;
    }
    const float variance = block_sum<WARPS>(squares, variance_parts) / size;
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = average;
        inv_std[blockIdx.x] = rsqrtf(variance + eps);
    }
}

__global__ void norm_pool_clamp(const float* __restrict__ h, const float* __restrict__ mean,
                                const float* __restrict__ inv_std,
                                const float* __restrict__ gamma, const float* __restrict__ beta,
                                const float* __restrict__ scale, float* __restrict__ y, int G,
                                int HO, int WO, int PH, int PW) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= PH * PW) {
        return;
    }
    const int co = blockIdx.y;
    const int group = blockIdx.z * G + co / GROUP;
    const long long plane = static_cast<long long>(blockIdx.z) * G * GROUP + co;
    const float* corner = h + (plane * HO + pool / PW * POOL) * WO + pool % PW * POOL;
    float best = -INFINITY;
    #pragma unroll
    for (int i = 0; i < POOL * POOL; ++i) {
        const float v = (corner[i / POOL * WO + i % POOL] - mean[group]) * inv_std[group];
        best = fmaxf(best, (v * gamma[co] + beta[co]) * scale[co]);
    }
    y[plane * (PH * PW) + pool] = fminf(fmaxf(best, 0.0f), 1.0f);
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, const float* scale, float* y, int B, int CI, int G, int CO, int H,
            int W, int HO, int WO, int PH, int PW, float eps) {
    const int pixels = HO * WO;
    float* h = scratch<float>(static_cast<long long>(B) * CO * pixels);
    float* mean = scratch<float>(B * G);
    float* inv_std = scratch<float>(B * G);
    const int tiles_w = (WO + TILE_W - 1) / TILE_W;
    const int tiles_h = (HO + TILE_H - 1) / TILE_H;
    dim3 block(TILE_W, TILE_H);
    dim3 grid(tiles_w * tiles_h, G, B);
    conv_group<<<grid, block>>>(x, weight, bias, h, CI, CO, H, W, HO, WO, tiles_w);
    group_statistics<<<B * G, THREADS>>>(h, mean, inv_std, GROUP * pixels, eps);
    dim3 pool_grid((PH * PW + THREADS - 1) / THREADS, CO, B);
    norm_pool_clamp<<<pool_grid, THREADS>>>(h, mean, inv_std, gamma, beta, scale, y, G, HO, WO,
                                            PH, PW);
}
