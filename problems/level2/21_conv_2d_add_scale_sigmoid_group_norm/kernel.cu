// y = group norm(sigmoid((conv3x3(x) + conv_bias + bias) * scale)), four channels a group.
//
// A thread makes the four channels of a group at one position, so the convolution's blocks
// already know which group they serve: each leaves the mean and the
// sum of squared deviations of its values. A second kernel merges a group's pairs, and a
// third normalises.

#include "sigmoid.cuh"
#include "tree_total.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int GROUP = 4;
static constexpr int THREADS = 128;

__global__ void conv_sigmoid_moments(const float* __restrict__ x,
                                     const float* __restrict__ weight,
                                     const float* __restrict__ conv_bias,
                                     const float* __restrict__ bias,
                                     const float* __restrict__ scale, float* __restrict__ y,
                                     float* __restrict__ means, float* __restrict__ m2s, int CI,
                                     int G, int H, int W, int HO, int WO) {
    __shared__ float sums[THREADS];
    const int group = blockIdx.y;
    const int pixels = HO * WO;
    const int first = blockIdx.x * THREADS;
    const int position = first + threadIdx.x;
    const bool inside = position < pixels;
    const int co0 = group * GROUP;

    float values[GROUP] = {};
    if (inside) {
        const int ho = position / WO;
        const int wo = position % WO;
        const float* corner = x + (static_cast<long long>(blockIdx.z) * CI * H + ho) * W + wo;
        for (int ci = 0; ci < CI; ++ci) {
            const float* filter = weight + (co0 * CI + ci) * TAPS;
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                const float v = corner[tap / K * W + tap % K];
                #pragma unroll
                for (int o = 0; o < GROUP; ++o) {
                    values[o] += v * filter[o * CI * TAPS + tap];
                }
            }
            corner += H * W;
        }
        #pragma unroll
        for (int o = 0; o < GROUP; ++o) {
            const int co = co0 + o;
            const float h = (values[o] + conv_bias[co] + bias[co]) * scale[co];
            values[o] = sigmoid(h);
            const long long plane = static_cast<long long>(blockIdx.z) * G * GROUP + co;
            y[plane * pixels + position] = values[o];
        }
    }

    const int count = GROUP * min(THREADS, pixels - first);
    const float sum = values[0] + values[1] + values[2] + values[3];
    const float mean = tree_total<THREADS>(sums, sum) / count;
    float squares = 0.0f;
    #pragma unroll
    for (int o = 0; o < GROUP; ++o) {
        const float d = inside ? values[o] - mean : 0.0f;
        squares += d * d;
    }
    const float m2 = tree_total<THREADS>(sums, squares);
    if (threadIdx.x == 0) {
        const int part = (blockIdx.z * G + group) * gridDim.x + blockIdx.x;
        means[part] = mean;
        m2s[part] = m2;
    }
}

__global__ void merge_parts(const float* __restrict__ means, const float* __restrict__ m2s,
                            float* __restrict__ group_mean, float* __restrict__ group_inv_std,
                            int groups, int parts, int pixels, float eps) {
    const int g = blockIdx.x * THREADS + threadIdx.x;
    if (g >= groups) {
        return;
    }
    float mean = means[g * parts];
    float m2 = m2s[g * parts];
    float count = GROUP * min(THREADS, pixels);
    for (int part = 1; part < parts; ++part) {
        const float more = GROUP * min(THREADS, pixels - part * THREADS);
        const float delta = means[g * parts + part] - mean;
        const float share = more / (count + more);
        mean += delta * share;
        m2 += m2s[g * parts + part] + delta * delta * count * share;
        count += more;
    }
    group_mean[g] = mean;
    group_inv_std[g] = rsqrtf(m2 / count + eps);
}

__global__ void normalise(float* y, const float* __restrict__ group_mean,
                          const float* __restrict__ group_inv_std,
                          const float* __restrict__ gamma, const float* __restrict__ beta, int G,
                          int pixels, long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n) {
        const int plane = i / pixels;
        const int group = plane / GROUP;
        const int co = plane % (G * GROUP);
        y[i] = (y[i] - group_mean[group]) * group_inv_std[group] * gamma[co] + beta[co];
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            const float* scale, const float* gamma, const float* beta, float* y, int B, int CI,
            int G, int H, int W, int HO, int WO, float eps) {
    const int pixels = HO * WO;
    const int parts = (pixels + THREADS - 1) / THREADS;
    const int groups = B * G;
    const long long n = static_cast<long long>(groups) * GROUP * pixels;
    float* means = scratch<float>(groups * parts);
    float* m2s = scratch<float>(groups * parts);
    float* group_mean = scratch<float>(groups);
    float* group_inv_std = scratch<float>(groups);

    dim3 grid(parts, G, B);
    conv_sigmoid_moments<<<grid, THREADS>>>(x, weight, conv_bias, bias, scale, y, means, m2s, CI,
                                            G, H, W, HO, WO);
    merge_parts<<<(groups + THREADS - 1) / THREADS, THREADS>>>(
        means, m2s, group_mean, group_inv_std, groups, parts, pixels, eps);
    normalise<<<(n + THREADS - 1) / THREADS, THREADS>>>(y, group_mean, group_inv_std, gamma, beta,
                                                        G, pixels, n);
}
