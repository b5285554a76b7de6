// y[n, co] = mean over the volume of group norm(hardswish(conv4x4x4(x) + bias)), four channels
// a group.
//
// Only moments of the convolution are needed, so it is never stored: a block per image and
// channel makes the values one after the other and keeps Welford's mean and M2, merged
// between threads in shared memory. A thread per channel then merges its group.

static constexpr int K = 4;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int GROUP = 4;

__global__ void conv_moments(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ means,
                             float* __restrict__ m2s, int CI, int CO, int D, int H, int W, int HO,
                             int WO, int size) {
    extern __shared__ float filter[];
    __shared__ float counts[THREADS];
    __shared__ float averages[THREADS];
    __shared__ float spreads[THREADS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;
    for (int i = tid; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[co * CI * TAPS + i];
    }
    __syncthreads();

    float count = 0.0f;
    float mean = 0.0f;
    float m2 = 0.0f;
    for (int position = tid; position < size; position += THREADS) {
        const int wo = position % WO;
        const int ho = position / WO % HO;
        const int dz = position / (WO * HO);
        const float* corner =
            x + ((static_cast<long long>(blockIdx.y) * CI * D + dz) * H + ho) * W + wo;
        float h = bias[co];
        for (int ci = 0; ci < CI; ++ci) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                const int at = (tap / (K * K) * H + tap / K % K) * W + tap % K;
                h += corner[at] * filter[ci * TAPS + tap];
            }
            corner += D * H * W;
        }
        const float v = h * fminf(fmaxf(h + 3.0f, 0.0f), 6.0f) / 6.0f;
        count += 1.0f;
        const float delta = v - mean;
        mean += delta / count;
        m2 += delta * (v - mean);
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

__global__ void mean_of_norm(const float* __restrict__ means, const float* __restrict__ m2s,
                             const float* __restrict__ gamma, const float* __restrict__ beta,
                             float* __restrict__ y, int CO, int channels, int size, float eps) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= channels) {
        return;
    }
    const int first = i / GROUP * GROUP;
    float mean = 0.0f;
    #pragma unroll
    for (int o = 0; o < GROUP; ++o) {
        mean += means[first + o] / GROUP;
    }
    float variance = 0.0f;
    #pragma unroll
    for (int o = 0; o < GROUP; ++o) {
        const float d = means[first + o] - mean;
        variance += (m2s[first + o] / size + d * d) / GROUP;
    }
    y[i] = (means[i] - mean) * rsqrtf(variance + eps) * gamma[i % CO] + beta[i % CO];
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int CO, int D, int H, int W, int DO,
            int HO, int WO, float eps) {
    const int size = DO * HO * WO;
    const int channels = B * CO;
    float* means = scratch<float>(channels);
    float* m2s = scratch<float>(channels);
    dim3 grid(CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv_moments<<<grid, THREADS, shared>>>(x, weight, bias, means, m2s, CI, CO, D, H, W, HO, WO,
                                            size);
    mean_of_norm<<<(channels + THREADS - 1) / THREADS, THREADS>>>(means, m2s, gamma, beta, y, CO,
                                                                  channels, size, eps);
}
