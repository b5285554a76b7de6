// y = gelu(average pool 2x2x2 of layer norm over the width of transposed conv3x3x3(x) + bias +
// sum_weight), stride 2, padding 1, output padding 1.
//
// A block makes one output row, so depth and height have a fixed parity and the row's norm
// needs nothing outside the block. Normalised rows go to a scratch tensor, from which the
// second kernel averages and applies GELU.

#include "gelu.cuh"
#include "tree_total.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int POOL_THREADS = 128;

__global__ void conv_row_norm(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias,
                              const float* __restrict__ sum_weight,
                              const float* __restrict__ gamma, const float* __restrict__ beta,
                              float* __restrict__ normed, int CI, int CO, int D, int H, int W,
                              int HO, int WO, float eps) {
    extern __shared__ float row[];
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    const int dz = blockIdx.x / HO;
    const int ho = blockIdx.x % HO;
    const int co = blockIdx.y;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * D * H * W;

    float total = 0.0f;
    for (int wo = tid; wo < WO; wo += THREADS) {
        float h = bias[co] + *sum_weight;
        // Even places take tap 1, odd ones taps 0 and 2.
        for (int kd = (dz + 1) % 2; kd < K; kd += 2) {
            const int id = (dz + 1 - kd) / 2;
            if (id >= D) {
                continue;
            }
            for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
                const int ih = (ho + 1 - kh) / 2;
                if (ih >= H) {
                    continue;
                }
                for (int kw = (wo + 1) % 2; kw < K; kw += 2) {
                    const int iw = (wo + 1 - kw) / 2;
                    if (iw >= W) {
                        continue;
                    }
                    const float* in = image + (id * H + ih) * W + iw;
                    const float* tap = weight + co * TAPS + (kd * K + kh) * K + kw;
                    for (int ci = 0; ci < CI; ++ci) {
                        h += in[ci * D * H * W] * tap[ci * CO * TAPS];
                    }
                }
            }
        }
        // Read back by the same thread only.
        row[wo] = h;
        total += h;
    }
    const float mean = tree_total<THREADS>(sums, total) / WO;
    float squares = 0.0f;
    for (int wo = tid; wo < WO; wo += THREADS) {
        const float d = row[wo] - mean;
        squares += d * d;
    }
    const float inv_std = rsqrtf(tree_total<THREADS>(sums, squares) / WO + eps);

    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    float* out = normed + (plane * gridDim.x + blockIdx.x) * WO;
    for (int wo = tid; wo < WO; wo += THREADS) {
        out[wo] = (row[wo] - mean) * inv_std * gamma[wo] + beta[wo];
    }
}

__global__ void pool_gelu(const float* __restrict__ normed, float* __restrict__ y, int H, int W,
                          long long outputs) {
    const long long i = static_cast<long long>(blockIdx.x) * POOL_THREADS + threadIdx.x;
    if (i >= outputs) {
        return;
    }
    const int w = i % W;
    const int h = i / W % H;
    // Depth and plane together: both double in the same way.
    const long long slab = i / (static_cast<long long>(W) * H);
    const int WO = 2 * W;
    const float* in = normed + ((2 * slab) * (2 * H) + 2 * h) * WO + 2 * w;
    const float* next = in + static_cast<long long>(2 * H) * WO;
    const float upper = in[0] + in[1] + in[WO] + in[WO + 1];
    const float lower = next[0] + next[1] + next[WO] + next[WO + 1];
    const float v = (upper + lower) * 0.125f;
    y[i] = gelu(v);
}

void launch(const float* x, const float* weight, const float* bias, const float* sum_weight,
            const float* gamma, const float* beta, float* y, int B, int CI, int CO, int D, int H,
            int W, int DO, int HO, int WO, float eps) {
    float* normed = scratch<float>(static_cast<long long>(B) * CO * DO * HO * WO);
    dim3 grid(DO * HO, CO, B);
    conv_row_norm<<<grid, THREADS, WO * sizeof(float)>>>(x, weight, bias, sum_weight, gamma, beta,
                                                         normed, CI, CO, D, H, W, HO, WO, eps);
    const long long outputs = static_cast<long long>(B) * CO * D * H * W;
    pool_gelu<<<(outputs + POOL_THREADS - 1) / POOL_THREADS, POOL_THREADS>>>(normed, y, H, W,
                                                                           outputs);
}
