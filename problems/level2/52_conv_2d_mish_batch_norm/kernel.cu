// y = batch norm(h * tanh(softplus(h))), h = conv3x3(x) + bias, no padding, training mode.
//
// A thread makes four output channels at one place and leaves the activated values in y.
// One block per channel then runs Welford over all images and merges its threads' states
// pair by pair in shared memory; the last kernel normalises y in place.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 4;
static constexpr int MAX_BLOCKS = 64;

__device__ __forceinline__ float mish(float v) {
    // PyTorch's softplus is linear from 20 on.
    const float softplus = v > 20.0f ? v : log1pf(expf(v));
    return tanhf(softplus) * v;
}

__global__ void conv_mish(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ y, int CI, int CO,
                          int H, int W, int HO, int WO) {
    const int pixels = HO * WO;
    const int position = blockIdx.x * THREADS + threadIdx.x;
    const int co0 = blockIdx.y * CO_TILE;
    if (position >= pixels) {
        return;
    }
    const int channels = min(CO_TILE, CO - co0);
    const float* in = x + (static_cast<long long>(blockIdx.z) * CI * H + position / WO) * W +
                      position % WO;
    const float* filters = weight + static_cast<long long>(co0) * CI * TAPS;

    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = in[tap / K * W + tap % K];
            #pragma unroll
            for (int o = 0; o < CO_TILE; ++o) {
                if (o < channels) {
                    acc[o] += v * filters[o * CI * TAPS + tap];
                }
            }
        }
        in += H * W;
        filters += TAPS;
    }
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        if (o < channels) {
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
            y[plane * pixels + position] = mish(acc[o] + bias[co0 + o]);
        }
    }
}

__global__ void channel_welford(const float* __restrict__ y, float* __restrict__ mean,
                                float* __restrict__ inv_std, int B, int CO, int pixels,
                                float eps) {
    __shared__ float counts[THREADS];
    __shared__ float means[THREADS];
    __shared__ float m2s[THREADS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;

    float count = 0.0f;
    float average = 0.0f;
    float m2 = 0.0f;
    for (int n = 0; n < B; ++n) {
        const float* plane = y + (static_cast<long long>(n) * CO + co) * pixels;
        for (int i = tid; i < pixels; i += THREADS) {
            const float v = plane[i];
            count += 1.0f;
            const float delta = v - average;
            average += delta / count;
            m2 += delta * (v - average);
        }
    }
    counts[tid] = count;
    means[tid] = average;
    m2s[tid] = m2;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            const float a = counts[tid];
            const float b = counts[tid + half];
            const float share = a + b > 0.0f ? b / (a + b) : 0.0f;
            const float delta = means[tid + half] - means[tid];
            counts[tid] = a + b;
            means[tid] += delta * share;
            m2s[tid] += m2s[tid + half] + delta * delta * a * share;
        }
        __syncthreads();
    }
    if (tid == 0) {
        mean[co] = means[0];
        inv_std[co] = rsqrtf(m2s[0] / counts[0] + eps);
    }
}

__global__ void normalise(float* y, const float* __restrict__ mean,
                          const float* __restrict__ inv_std, const float* __restrict__ gamma,
                          const float* __restrict__ beta, int CO, int pixels, long long n) {
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    for (long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < n;
         i += stride) {
        const int co = i / pixels % CO;
        y[i] = (y[i] - mean[co]) * inv_std[co] * gamma[co] + beta[co];
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int CO, int H, int W, int HO, int WO,
            float eps) {
    const int pixels = HO * WO;
    const long long n = static_cast<long long>(B) * CO * pixels;
    float* mean = scratch<float>(CO);
    float* inv_std = scratch<float>(CO);
    dim3 grid((pixels + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_mish<<<grid, THREADS>>>(x, weight, bias, y, CI, CO, H, W, HO, WO);
    channel_welford<<<CO, THREADS>>>(y, mean, inv_std, B, CO, pixels, eps);
    const int blocks = min((n + THREADS - 1) / THREADS, static_cast<long long>(MAX_BLOCKS));
    normalise<<<blocks, THREADS>>>(y, mean, inv_std, gamma, beta, CO, pixels, n);
}
