// y[n] = sum over channels and pools of sigmoid(average 4x4 of conv3x3(x) + bias).
//
// Averaging and filtering commute: a tap's 16 products under one pool are its weight times the
// sum of a 4x4 box of inputs. A thread forms the nine boxes of its pool from running sums
// of the 6x6 patch, and the filter costs nine multiply-adds instead of 144. Blocks leave
// partial sums, a second kernel adds them per image.

#include "sigmoid.cuh"
#include "tree_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int POOL = 4;
static constexpr int PATCH = POOL + K - 1;
static constexpr int THREADS = 64;

__global__ void pooled_sigmoids(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ partial,
                                int CI, int CO, int H, int W, int PH, int PW) {
    __shared__ float sums[THREADS];
    const int co = blockIdx.y;
    const int pool = blockIdx.x * THREADS + threadIdx.x;

    float value = 0.0f;
    if (pool < PH * PW) {
        const float* in = x + (static_cast<long long>(blockIdx.z) * CI * H + pool / PW * POOL) * W +
                          pool % PW * POOL;
        float sum = 0.0f;
        for (int ci = 0; ci < CI; ++ci) {
            // Four neighbouring values of each row, for the three columns of the window.
            float across[PATCH][K];
            #pragma unroll
            for (int i = 0; i < PATCH; ++i) {
                const float* row = in + i * W;
                const float middle = row[2] + row[3];
                const float left = row[1] + middle;
                const float right = middle + row[4];
                across[i][0] = row[0] + left;
                across[i][1] = left + row[4];
                across[i][2] = right + row[5];
            }
            const float* filter = weight + (co * CI + ci) * TAPS;
            #pragma unroll
            for (int kh = 0; kh < K; ++kh) {
                #pragma unroll
                for (int kw = 0; kw < K; ++kw) {
                    const float box = across[kh][kw] + across[kh + 1][kw] + across[kh + 2][kw] +
                                      across[kh + 3][kw];
                    sum += box * filter[kh * K + kw];
                }
            }
            in += H * W;
        }
        const float average = sum / (POOL * POOL) + bias[co];
        value = sigmoid(average);
    }
    tree_sum<THREADS>(sums, value);
    if (threadIdx.x == 0) {
        const long long row = static_cast<long long>(blockIdx.z) * CO + co;
        partial[row * gridDim.x + blockIdx.x] = sums[0];
    }
}

__global__ void sum_parts(const float* __restrict__ partial, float* __restrict__ y, int parts) {
    __shared__ float sums[THREADS];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < parts; i += THREADS) {
        sum += partial[static_cast<long long>(blockIdx.x) * parts + i];
    }
    tree_sum<THREADS>(sums, sum);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sums[0];
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int PH, int PW) {
    dim3 grid((PH * PW + THREADS - 1) / THREADS, CO, B);
    const int parts = CO * grid.x;
    float* partial = scratch<float>(static_cast<long long>(B) * parts);
    pooled_sigmoids<<<grid, THREADS>>>(x, weight, bias, partial, CI, CO, H, W, PH, PW);
    sum_parts<<<B, THREADS>>>(partial, y, parts);
}
