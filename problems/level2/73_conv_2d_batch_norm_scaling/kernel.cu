// y = batch norm(conv3x3(x) + bias) * scaling, no padding, training mode.
//
// The convolution is cheap, 72 multiply-adds, and a round trip through memory is not: it
// is made once for the statistics, block by block, and a second time when the coefficients
// are known. Blocks leave mean and squared deviation of what they made; a thread per
// channel merges them.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;

__device__ __forceinline__ float convolve(const float* corner, const float* __restrict__ filter,
                                          int CI, int H, int W) {
    float sum = 0.0f;
    for (int ci = 0; ci < CI; ++ci) {
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            sum += corner[tap / K * W + tap % K] * filter[ci * TAPS + tap];
        }
        corner += H * W;
    }
    return sum;
}

__global__ void block_moments(const float* __restrict__ x, const float* __restrict__ weight,
                              float* __restrict__ means, float* __restrict__ m2s, int CI, int CO,
                              int H, int W, int WO, int pixels) {
    __shared__ float values[THREADS];
    const int tid = threadIdx.x;
    const int co = blockIdx.y;
    const int first = blockIdx.x * THREADS;
    const int p = first + tid;
    const int count = min(THREADS, pixels - first);

    float v = 0.0f;
    if (p < pixels) {
        const float* corner =
            x + (static_cast<long long>(blockIdx.z) * CI * H + p / WO) * W + p % WO;
        v = convolve(corner, weight + co * CI * TAPS, CI, H, W);
    }
    values[tid] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            values[tid] += values[tid + half];
        }
        __syncthreads();
    }
    const float mean = values[0] / count;
    // Everybody has the mean before the values are overwritten.
    __syncthreads();
    const float d = p < pixels ? v - mean : 0.0f;
    values[tid] = d * d;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            values[tid] += values[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        const long long part = static_cast<long long>(blockIdx.z) * gridDim.x + blockIdx.x;
        means[part * CO + co] = mean;
        m2s[part * CO + co] = values[0];
    }
}

// The bias shifts values and mean alike, so it is left out of both.
__global__ void coefficients(const float* __restrict__ means, const float* __restrict__ m2s,
                             const float* __restrict__ gamma, float* __restrict__ mean,
                             float* __restrict__ slope, int B, int CO, int parts, int pixels,
                             float eps, float scaling_factor) {
    const int co = blockIdx.x * THREADS + threadIdx.x;
    if (co >= CO) {
        return;
    }
    float average = 0.0f;
    float m2 = 0.0f;
    float count = 0.0f;
    for (int part = 0; part < B * parts; ++part) {
        const float more = min(THREADS, pixels - part % parts * THREADS);
        const float delta = means[static_cast<long long>(part) * CO + co] - average;
        const float share = more / (count + more);
        average += delta * share;
        m2 += m2s[static_cast<long long>(part) * CO + co] + delta * delta * count * share;
        count += more;
    }
    mean[co] = average;
    slope[co] = rsqrtf(m2 / count + eps) * gamma[co] * scaling_factor;
}

__global__ void convolve_and_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ mean,
                                  const float* __restrict__ slope,
                                  const float* __restrict__ beta, float* __restrict__ y, int CI,
                                  int CO, int H, int W, int WO, int pixels,
                                  float scaling_factor) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    const int co = blockIdx.y;
    if (p >= pixels) {
        return;
    }
    const float* corner =
        x + (static_cast<long long>(blockIdx.z) * CI * H + p / WO) * W + p % WO;
    const float v = convolve(corner, weight + co * CI * TAPS, CI, H, W);
    y[(static_cast<long long>(blockIdx.z) * CO + co) * pixels + p] =
        (v - mean[co]) * slope[co] + beta[co] * scaling_factor;
}

void launch(const float* x, const float* weight, const float* gamma, const float* beta, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO, float eps,
            float scaling_factor) {
    const int pixels = HO * WO;
    const int parts = (pixels + THREADS - 1) / THREADS;
    float* means = scratch<float>(static_cast<long long>(B) * parts * CO);
    float* m2s = scratch<float>(static_cast<long long>(B) * parts * CO);
    float* mean = scratch<float>(CO);
    float* slope = scratch<float>(CO);
    dim3 grid(parts, CO, B);
    block_moments<<<grid, THREADS>>>(x, weight, means, m2s, CI, CO, H, W, WO, pixels);
    coefficients<<<(CO + THREADS - 1) / THREADS, THREADS>>>(means, m2s, gamma, mean, slope, B, CO,
                                                            parts, pixels, eps, scaling_factor);
    convolve_and_norm<<<grid, THREADS>>>(x, weight, mean, slope, beta, y, CI, CO, H, W, WO, pixels,
                                         scaling_factor);
}
