// y = hardswish(group norm(swish(transposed conv3x3x3(x) + bias))), stride 2, padding 1, four
// channels a group.
//
// A thread makes the four channels of a group at one place and leaves them in y; its block
// leaves mean and squared deviation of all it made. The last kernel merges the pairs of a
// group, in every block anew, and normalises one stretch of it.

#include "hard_swish.cuh"
#include "swish.cuh"
#include "tree_total.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int GROUP = 4;
static constexpr int STRETCH = 1024;

__global__ void conv_swish_moments(const float* __restrict__ x, const float* __restrict__ weight,
                                   const float* __restrict__ bias, float* __restrict__ y,
                                   float* __restrict__ means, float* __restrict__ m2s, int CI,
                                   int G, int D, int H, int W, int HO, int WO, int positions) {
    __shared__ float sums[THREADS];
    const int group = blockIdx.y;
    const int CO = G * GROUP;
    const int first = blockIdx.x * THREADS;
    const int position = first + threadIdx.x;
    const bool inside = position < positions;

    float values[GROUP] = {};
    if (inside) {
        const int wo = position % WO;
        const int ho = position / WO % HO;
        const int dz = position / (WO * HO);
        const int volume = D * H * W;
        const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;
        // Even places take tap 1, odd ones taps 0 and 2; without output padding all exist.
        for (int kd = (dz + 1) % 2; kd < K; kd += 2) {
            for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
                for (int kw = (wo + 1) % 2; kw < K; kw += 2) {
                    const int voxel =
                        ((dz + 1 - kd) / 2 * H + (ho + 1 - kh) / 2) * W + (wo + 1 - kw) / 2;
                    const float* tap =
                        weight + group * GROUP * TAPS + (kd * K + kh) * K + kw;
                    for (int ci = 0; ci < CI; ++ci) {
                        const float v = image[ci * volume + voxel];
                        #pragma unroll
                        for (int o = 0; o < GROUP; ++o) {
                            values[o] += v * tap[(ci * CO + o) * TAPS];
                        }
                    }
                }
            }
        }
        #pragma unroll
        for (int o = 0; o < GROUP; ++o) {
            const int co = group * GROUP + o;
            const float h = values[o] + bias[co];
            values[o] = swish(h);
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
            y[plane * positions + position] = values[o];
        }
    }
    const int count = GROUP * min(THREADS, positions - first);
    const float mean = tree_total<THREADS>(sums, values[0] + values[1] + values[2] + values[3]) / count;
    float squares = 0.0f;
    #pragma unroll
    for (int o = 0; o < GROUP; ++o) {
        const float d = inside ? values[o] - mean : 0.0f;
        squares += d * d;
    }
    squares = tree_total<THREADS>(sums, squares);
    if (threadIdx.x == 0) {
        const int part = (blockIdx.z * G + group) * gridDim.x + blockIdx.x;
        means[part] = mean;
        m2s[part] = squares;
    }
}

__global__ void norm_hard_swish(float* y, const float* __restrict__ means,
                                const float* __restrict__ m2s, const float* __restrict__ gamma,
                                const float* __restrict__ beta, int G, int positions, int parts,
                                float eps) {
    __shared__ float moments[2];
    if (threadIdx.x == 0) {
        const float* mean = means + static_cast<long long>(blockIdx.y) * parts;
        const float* m2 = m2s + static_cast<long long>(blockIdx.y) * parts;
        float all_mean = mean[0];
        float all_m2 = m2[0];
        float count = GROUP * min(THREADS, positions);
        for (int part = 1; part < parts; ++part) {
            const float more = GROUP * min(THREADS, positions - part * THREADS);
            const float delta = mean[part] - all_mean;
            const float share = more / (count + more);
            all_mean += delta * share;
            all_m2 += m2[part] + delta * delta * count * share;
            count += more;
        }
        moments[0] = all_mean;
        moments[1] = rsqrtf(all_m2 / count + eps);
    }
    __syncthreads();

    const int size = GROUP * positions;
    const int group = blockIdx.y % G;
    float* values = y + static_cast<long long>(blockIdx.y) * size;
    const int last = min((blockIdx.x + 1) * STRETCH, size);
    for (int i = blockIdx.x * STRETCH + threadIdx.x; i < last; i += THREADS) {
        const int co = group * GROUP + i / positions;
        const float v = (values[i] - moments[0]) * moments[1] * gamma[co] + beta[co];
        values[i] = hard_swish(v);
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int G, int D, int H, int W, int DO,
            int HO, int WO, float eps) {
    const int positions = DO * HO * WO;
    const int parts = (positions + THREADS - 1) / THREADS;
    float* means = scratch<float>(B * G * parts);
    float* m2s = scratch<float>(B * G * parts);
    dim3 grid(parts, G, B);
    conv_swish_moments<<<grid, THREADS>>>(x, weight, bias, y, means, m2s, CI, G, D, H, W, HO, WO,
                                          positions);
    dim3 norm_grid((GROUP * positions + STRETCH - 1) / STRETCH, B * G);
    norm_hard_swish<<<norm_grid, THREADS>>>(y, means, m2s, gamma, beta, G, positions, parts, eps);
}
