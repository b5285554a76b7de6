// y = group norm(gelu(transposed conv3x3(x) + bias)), eight channels a group.
//
// The transposed convolution is an ordinary one of the zero-padded image with the reversed
// filter. A thread makes four rows of a column and reuses, tap by tap, what neighbouring
// rows share. The norm takes a block per image and group and merges Welford states.

#include "gelu.cuh"
#include "moments.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int TILE = 16;
static constexpr int ROWS = 4;
static constexpr int TY = TILE / ROWS;
static constexpr int PATCH = TILE + K - 1;
static constexpr int THREADS = TILE * TY;
static constexpr int GROUP = 8;
static constexpr int NORM_THREADS = 128;
static constexpr int WARPS = NORM_THREADS / WARP;

__global__ void conv_transpose_gelu(const float* __restrict__ x,
                                    const float* __restrict__ weight,
                                    const float* __restrict__ bias, float* __restrict__ y,
                                    int CI, int CO, int H, int W, int HO, int WO, int tiles_w) {
    __shared__ float patch[PATCH][PATCH];
    __shared__ float taps[TAPS];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = blockIdx.x % tiles_w * TILE;
    const int row0 = blockIdx.x / tiles_w * TILE;
    const int co = blockIdx.y;

    float acc[ROWS] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(blockIdx.z) * CI + ci) * H * W;
        for (int i = tid; i < PATCH * PATCH; i += THREADS) {
            const int h = row0 + i / PATCH - (K - 1);
            const int w = col0 + i % PATCH - (K - 1);
            const bool inside = h >= 0 && h < H && w >= 0 && w < W;
            patch[i / PATCH][i % PATCH] = inside ? plane[h * W + w] : 0.0f;
        }
        if (tid < TAPS) {
            taps[tid] = weight[(ci * CO + co) * TAPS + TAPS - 1 - tid];
        }
        __syncthreads();
        #pragma unroll
        for (int kw = 0; kw < K; ++kw) {
            float column[ROWS + K - 1];
            #pragma unroll
            for (int i = 0; i < ROWS + K - 1; ++i) {
                column[i] = patch[ty * ROWS + i][tx + kw];
            }
            #pragma unroll
            for (int kh = 0; kh < K; ++kh) {
                const float tap = taps[kh * K + kw];
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    acc[r] += column[r + kh] * tap;
                }
            }
        }
        __syncthreads();
    }

    const int wo = col0 + tx;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int ho = row0 + ty * ROWS + r;
        if (ho < HO && wo < WO) {
            const float v = acc[r] + bias[co];
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
            y[(plane * HO + ho) * WO + wo] = gelu(v);
        }
    }
}

__global__ void norm_group(float* y, const float* __restrict__ gamma,
                           const float* __restrict__ beta, int G, int pixels, float eps) {
    __shared__ Moments parts[WARPS];
    const int tid = threadIdx.x;
    const int group = blockIdx.x % G;
    const int size = GROUP * pixels;
    float* values = y + static_cast<long long>(blockIdx.x) * size;

    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = tid; i < size; i += NORM_THREADS) {
        const float v = values[i];
        m.count += 1.0f;
        const float delta = v - m.mean;
        m.mean += delta / m.count;
        m.m2 += delta * (v - m.mean);
    }
    m = warp_merge(m);
    if (tid % WARP == 0) {
        parts[tid / WARP] = m;
    }
    __syncthreads();
    m = merge(merge(parts[0], parts[1]), merge(parts[2], parts[3]));
    const float inv_std = rsqrtf(m.m2 / size + eps);

    for (int i = tid; i < size; i += NORM_THREADS) {
        const int co = group * GROUP + i / pixels;
        values[i] = (values[i] - m.mean) * inv_std * gamma[co] + beta[co];
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int G, int CO, int H, int W, int HO,
            int WO, float eps) {
    const int tiles_w = (WO + TILE - 1) / TILE;
    const int tiles_h = (HO + TILE - 1) / TILE;
    dim3 block(TILE, TY);
    dim3 grid(tiles_w * tiles_h, CO, B);
    conv_transpose_gelu<<<grid, block>>>(x, weight, bias, y, CI, CO, H, W, HO, WO, tiles_w);
    norm_group<<<B * G, NORM_THREADS>>>(y, gamma, beta, G, HO * WO, eps);
}
