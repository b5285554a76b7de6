// y = batch norm(transposed conv3x3x3(x)) less its mean over each volume, stride 2, padding 1,
// training mode.
//
// Subtracting a volume's mean removes whatever the norm shifts, so y = (h - mean of the volume) *
// gamma / deviation of the channel. A block per volume finds mean and squared deviation of h,
// which is in y; a channel's deviation is merged from its volumes; the last kernel scales.

#include "tree_total.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;

__global__ void conv_transpose(const float* __restrict__ x, const float* __restrict__ weight,
                               float* __restrict__ h, int CI, int CO, int D, int H, int W, int DO,
                               int HO, int WO) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= DO * HO * WO) {
        return;
    }
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const int co = blockIdx.y;
    const int volume = D * H * W;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;

    float sum = 0.0f;
    // Even places take tap 1, odd ones taps 0 and 2; without output padding all exist.
    for (int kd = (dz + 1) % 2; kd < K; kd += 2) {
        for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
            for (int kw = (wo + 1) % 2; kw < K; kw += 2) {
                const int d = (dz + 1 - kd) / 2;
                const int r = (ho + 1 - kh) / 2;
                const int c = (wo + 1 - kw) / 2;
                const float* in = image + (d * H + r) * W + c;
                const float* tap = weight + co * TAPS + (kd * K + kh) * K + kw;
                for (int ci = 0; ci < CI; ++ci) {
                    sum += in[static_cast<long long>(ci) * volume] * tap[ci * CO * TAPS];
                }
            }
        }
    }
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    h[plane * (DO * HO * WO) + position] = sum;
}

__global__ void volume_moments(const float* __restrict__ h, float* __restrict__ means,
                               float* __restrict__ m2s, int size) {
    __shared__ float sums[THREADS];
    const float* values = h + static_cast<long long>(blockIdx.x) * size;
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
    squares = tree_total<THREADS>(sums, squares);
    if (threadIdx.x == 0) {
        means[blockIdx.x] = mean;
        m2s[blockIdx.x] = squares;
    }
}

__global__ void channel_slopes(const float* __restrict__ means, const float* __restrict__ m2s,
                               const float* __restrict__ gamma, float* __restrict__ slopes, int B,
                               int CO, int size, float eps) {
    const int co = blockIdx.x * THREADS + threadIdx.x;
    if (co >= CO) {
        return;
    }
    float mean = means[co];
    float m2 = m2s[co];
    for (int n = 1; n < B; ++n) {
        // All volumes are equally large: n of them are merged with one more.
        const float delta = means[n * CO + co] - mean;
        mean += delta / (n + 1);
        m2 += m2s[n * CO + co] + delta * delta * size * n / (n + 1);
    }
    slopes[co] = gamma[co] * rsqrtf(m2 / (static_cast<float>(B) * size) + eps);
}

__global__ void centre_and_scale(float* y, const float* __restrict__ means,
                                 const float* __restrict__ slopes, int CO, int size,
                                 long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n) {
        const int volume = i / size;
        y[i] = (y[i] - means[volume]) * slopes[volume % CO];
    }
}

void launch(const float* x, const float* weight, const float* gamma, float* y, int B, int CI,
            int CO, int D, int H, int W, int DO, int HO, int WO, float eps) {
    const int size = DO * HO * WO;
    const long long n = static_cast<long long>(B) * CO * size;
    float* means = scratch<float>(B * CO);
    float* m2s = scratch<float>(B * CO);
    float* slopes = scratch<float>(CO);
    dim3 grid((size + THREADS - 1) / THREADS, CO, B);
    conv_transpose<<<grid, THREADS>>>(x, weight, y, CI, CO, D, H, W, DO, HO, WO);
    volume_moments<<<B * CO, THREADS>>>(y, means, m2s, size);
    channel_slopes<<<(CO + THREADS - 1) / THREADS, THREADS>>>(means, m2s, gamma, slopes, B, CO,
                                                              size, eps);
    centre_and_scale<<<(n + THREADS - 1) / THREADS, THREADS>>>(y, means, slopes, CO, size, n);
}
