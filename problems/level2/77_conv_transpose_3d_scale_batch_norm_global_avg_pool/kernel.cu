// y[n, co] = mean over the volume of batch norm(scale * (transposed conv5x5x5(x) + bias)),
// stride 1, no padding, training mode.
//
// Only moments matter. A block per image and channel makes the convolution's values in turn
// and keeps their Welford state; nothing else is stored. A thread per channel merges the
// images and writes how each image's mean lies to the channel's.

static constexpr int K = 5;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;

__global__ void volume_moments(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ means,
                               float* __restrict__ m2s, int CI, int CO, int D, int H, int W,
                               int HO, int WO, int size, float scale_factor) {
    __shared__ float taps[TAPS];
    __shared__ float counts[THREADS];
    __shared__ float averages[THREADS];
    __shared__ float spreads[THREADS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;

    float count = 0.0f;
    float mean = 0.0f;
    float m2 = 0.0f;
    for (int base = 0; base < size; base += THREADS) {
        const int position = base + tid;
        const bool inside = position < size;
        const int wo = position % WO;
        const int ho = position / WO % HO;
        const int dz = position / (WO * HO);
        const int kd_first = max(0, dz - D + 1);
        const int kd_last = inside ? min(K - 1, dz) : -1;
        const int kh_first = max(0, ho - H + 1);
        const int kh_last = min(K - 1, ho);
        const int kw_first = max(0, wo - W + 1);
        const int kw_last = min(K - 1, wo);
        float sum = bias[co];
        const float* image = x + static_cast<long long>(blockIdx.y) * CI * D * H * W;
        for (int ci = 0; ci < CI; ++ci) {
            if (tid < TAPS) {
                taps[tid] = weight[(ci * CO + co) * TAPS + tid];
            }
            __syncthreads();
            for (int kd = kd_first; kd <= kd_last; ++kd) {
                for (int kh = kh_first; kh <= kh_last; ++kh) {
                    const float* row = image + ((dz - kd) * H + ho - kh) * W + wo;
                    for (int kw = kw_first; kw <= kw_last; ++kw) {
                        sum += row[-kw] * taps[(kd * K + kh) * K + kw];
                    }
                }
            }
            image += D * H * W;
            __syncthreads();
        }
        if (inside) {
            const float v = sum * scale_factor;
            count += 1.0f;
            const float delta = v - mean;
            mean += delta / count;
            m2 += delta * (v - mean);
        }
    }
    counts[tid] = count;
    averages[tid] = mean;
    spreads[tid] = m2;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            const float a = counts[tid];
            const float b = counts[tid + half];
            const float share = a + b > 0.0f ? b / (a + b) : 0.0f;
            const float delta = averages[tid + half] - averages[tid];
            counts[tid] = a + b;
            averages[tid] += delta * share;
            spreads[tid] += spreads[tid + half] + delta * delta * a * share;
        }
        __syncthreads();
    }
    if (tid == 0) {
        means[static_cast<long long>(blockIdx.y) * CO + co] = averages[0];
        m2s[static_cast<long long>(blockIdx.y) * CO + co] = spreads[0];
    }
}

__global__ void norm_means(const float* __restrict__ means, const float* __restrict__ m2s,
                           const float* __restrict__ gamma, const float* __restrict__ beta,
                           float* __restrict__ y, int B, int CO, int size, float eps) {
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
    const float slope = gamma[co] * rsqrtf(m2 / (static_cast<float>(B) * size) + eps);
    for (int n = 0; n < B; ++n) {
        y[n * CO + co] = (means[n * CO + co] - mean) * slope + beta[co];
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int CO, int D, int H, int W, int DO,
            int HO, int WO, float scale_factor, float eps) {
    const int size = DO * HO * WO;
    float* means = scratch<float>(B * CO);
    float* m2s = scratch<float>(B * CO);
    dim3 grid(CO, B);
    volume_moments<<<grid, THREADS>>>(x, weight, bias, means, m2s, CI, CO, D, H, W, HO, WO, size,
                                      scale_factor);
    norm_means<<<(CO + THREADS - 1) / THREADS, THREADS>>>(means, m2s, gamma, beta, y, B, CO, size,
                                                          eps);
}
