// y = group norm(max pool 2x2 of tanh(batch norm(transposed conv5x5(x) + bias))), stride 1,
// padding 1, batch norm in training mode.
//
// The convolution leaves h in a scratch tensor. A block per channel finds its mean and
// deviation over all images, the pooling kernel normalises what it reads, and a block per
// image and group normalises the pooled values in place.

#include "tree_total.cuh"

static constexpr int K = 5;
static constexpr int TAPS = K * K;
static constexpr int PAD = 1;
static constexpr int THREADS = 128;

__global__ void conv_transpose(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ h, int CI,
                               int CO, int H, int W, int HO, int WO) {
    extern __shared__ float filter[];
    const int co = blockIdx.y;
    for (int i = threadIdx.x; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[(i / TAPS * CO + co) * TAPS + i % TAPS];
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= HO * WO) {
        return;
    }
    // Output o meets input o + PAD - k through tap k.
    const int up = position / WO + PAD;
    const int left = position % WO + PAD;

    float sum = bias[co];
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W + up * W + left;
    for (int ci = 0; ci < CI; ++ci) {
        const float* taps = filter + ci * TAPS;
        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                const int r = up - kh;
                const int c = left - kw;
                const bool inside = r >= 0 && r < H && c >= 0 && c < W;
                sum += inside ? image[-kh * W - kw] * taps[kh * K + kw] : 0.0f;
            }
        }
        image += H * W;
    }
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    h[plane * (HO * WO) + position] = sum;
}

__global__ void channel_statistics(const float* __restrict__ h, float* __restrict__ mean,
                                   float* __restrict__ inv_std, int B, int CO, int pixels,
                                   float eps) {
    __shared__ float sums[THREADS];
    const int co = blockIdx.x;
    const int count = B * pixels;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        sum += h[(static_cast<long long>(i / pixels) * CO + co) * pixels + i % pixels];
    }
    const float average = tree_total<THREADS>(sums, sum) / count;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float d =
            h[(static_cast<long long>(i / pixels) * CO + co) * pixels + i % pixels] - average;
        squares += d * d;
    }
    const float variance = tree_total<THREADS>(sums, squares) / count;
    if (threadIdx.x == 0) {
        mean[co] = average;
        inv_std[co] = rsqrtf(variance + eps);
    }
}

__global__ void norm_tanh_pool(const float* __restrict__ h, const float* __restrict__ mean,
                               const float* __restrict__ inv_std,
                               const float* __restrict__ gamma, const float* __restrict__ beta,
                               float* __restrict__ y, int CO, int HO, int WO, int PH, int PW) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= PH * PW) {
        return;
    }
    const int co = blockIdx.y;
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    const float* corner = h + (plane * HO + pool / PW * 2) * WO + pool % PW * 2;
    float best = -INFINITY;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float v = corner[i / 2 * WO + i % 2];
        best = fmaxf(best, tanhf((v - mean[co]) * inv_std[co] * gamma[co] + beta[co]));
    }
    y[plane * (PH * PW) + pool] = best;
}

__global__ void group_norm_in_place(float* y, const float* __restrict__ gamma,
                                    const float* __restrict__ beta, int G, int CG, int pools,
                                    float eps) {
    __shared__ float sums[THREADS];
    const int group = blockIdx.x % G;
    const int size = CG * pools;
    float* values = y + static_cast<long long>(blockIdx.x) * size;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        sum += values[i];
    }
    const float mean = tree_total<THREADS>(sums, sum) / size;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const float d = values[i] - mean;
        squares += d * d;
    }
    const float inv_std = rsqrtf(tree_total<THREADS>(sums, squares) / size + eps);
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const int co = group * CG + i / pools;
        values[i] = (values[i] - mean) * inv_std * gamma[co] + beta[co];
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* bn_gamma,
            const float* bn_beta, const float* gn_gamma, const float* gn_beta, float* y, int B,
            int CI, int G, int CG, int CO, int H, int W, int HO, int WO, int PH, int PW,
            float eps) {
    const int pixels = HO * WO;
    const int pools = PH * PW;
    float* h = scratch<float>(static_cast<long long>(B) * CO * pixels);
    float* mean = scratch<float>(CO);
    float* inv_std = scratch<float>(CO);

    dim3 grid((pixels + THREADS - 1) / THREADS, CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv_transpose<<<grid, THREADS, shared>>>(x, weight, bias, h, CI, CO, H, W, HO, WO);
    channel_statistics<<<CO, THREADS>>>(h, mean, inv_std, B, CO, pixels, eps);
    dim3 pool_grid((pools + THREADS - 1) / THREADS, CO, B);
    norm_tanh_pool<<<pool_grid, THREADS>>>(h, mean, inv_std, bn_gamma, bn_beta, y, CO, HO, WO,
                                           PH, PW);
    group_norm_in_place<<<B * G, THREADS>>>(y, gn_gamma, gn_beta, G, CG, pools, eps);
}
