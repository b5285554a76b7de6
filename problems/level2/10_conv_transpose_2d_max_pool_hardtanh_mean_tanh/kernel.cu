// y = tanh(mean over the image of clamp(max pool 2x2 of transposed conv3x3(x) + bias)),
// stride 1, padding 1.
//
// A thread makes one pooled value from a 4x4 patch in registers. A block adds its threads'
// values and leaves one partial sum; the second kernel adds a plane's partial sums.

#include "tree_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int POOL = 2;
static constexpr int PATCH = POOL + K - 1;
static constexpr int THREADS = 64;

__global__ void pooled_sums(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias, float* __restrict__ partial, int CI,
                            int CO, int H, int W, int PH, int PW) {
    __shared__ float sums[THREADS];
    const int co = blockIdx.y;
    const int pool = blockIdx.x * THREADS + threadIdx.x;

    float value = 0.0f;
    if (pool < PH * PW) {
        // The padding of 1 puts the patch one row and column before the pool.
        const int h0 = pool / PW * POOL - 1;
        const int w0 = pool % PW * POOL - 1;
        const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;

        float acc[POOL][POOL] = {};
        for (int ci = 0; ci < CI; ++ci) {
            float patch[PATCH][PATCH];
            #pragma unroll
            for (int i = 0; i < PATCH; ++i) {
                #pragma unroll
                for (int j = 0; j < PATCH; ++j) {
                    const int h = h0 + i;
                    const int w = w0 + j;
                    const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                    patch[i][j] = inside ? image[h * W + w] : 0.0f;
                }
            }
            const float* filter = weight + (ci * CO + co) * TAPS;
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                // A transposed convolution meets its taps in reverse.
                const float w = filter[TAPS - 1 - tap];
                #pragma unroll
                for (int i = 0; i < POOL; ++i) {
                    #pragma unroll
                    for (int j = 0; j < POOL; ++j) {
                        acc[i][j] += patch[i + tap / K][j + tap % K] * w;
                    }
                }
            }
            image += H * W;
        }
        const float best = fmaxf(fmaxf(acc[0][0], acc[0][1]), fmaxf(acc[1][0], acc[1][1]));
        value = fminf(fmaxf(best + bias[co], -1.0f), 1.0f);
    }
    tree_sum<THREADS>(sums, value);
    if (threadIdx.x == 0) {
        const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
        partial[plane * gridDim.x + blockIdx.x] = sums[0];
    }
}

__global__ void mean_tanh(const float* __restrict__ partial, float* __restrict__ y, int parts,
                          int pools) {
    __shared__ float sums[THREADS];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < parts; i += THREADS) {
        sum += partial[static_cast<long long>(blockIdx.x) * parts + i];
    }
    tree_sum<THREADS>(sums, sum);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = tanhf(sums[0] / pools);
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int PH, int PW) {
    const int parts = (PH * PW + THREADS - 1) / THREADS;
    float* partial = scratch<float>(static_cast<long long>(B) * CO * parts);
    dim3 grid(parts, CO, B);
    pooled_sums<<<grid, THREADS>>>(x, weight, bias, partial, CI, CO, H, W, PH, PW);
    mean_tanh<<<B * CO, THREADS>>>(partial, y, parts, PH * PW);
}
