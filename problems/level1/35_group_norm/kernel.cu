// GroupNorm of x[B, C, H, W], G groups of neighbouring channels.
//
// Three kernels: mean and M2 (the sum of squared deviations) of every plane by Welford's
// update; the planes of a group merged into one mean and reciprocal deviation; the result.

static constexpr int THREADS = 128;
static constexpr int WARP = 32;
static constexpr int WARPS = THREADS / WARP;
static constexpr unsigned FULL_MASK = 0xffffffffu;

struct Moments {
    float count;
    float mean;
    float m2;
};

__device__ __forceinline__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) {
        return a;
    }
    const float delta = b.mean - a.mean;
    const float share = b.count / count;
    return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

__device__ __forceinline__ Moments warp_merge(Moments m) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        Moments other;
        other.count = __shfl_down_sync(FULL_MASK, m.count, offset);
        other.mean = __shfl_down_sync(FULL_MASK, m.mean, offset);
        other.m2 = __shfl_down_sync(FULL_MASK, m.m2, offset);
        m = merge(m, other);
    }
    return m;
}

__global__ void plane_moments(const float* __restrict__ x, float* __restrict__ plane_mean,
                              float* __restrict__ plane_m2, int spatial) {
    __shared__ Moments partial[WARPS];
    const float* in = x + static_cast<long long>(blockIdx.x) * spatial;

    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < spatial; i += THREADS) {
        const float v = in[i];
        m.count += 1.0f;
        const float delta = v - m.mean;
        m.mean += delta / m.count;
        m.m2 += delta * (v - m.mean);
    }
    m = warp_merge(m);
    if (threadIdx.x % WARP == 0) {
        partial[threadIdx.x / WARP] = m;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; ++w) {
            m = merge(m, partial[w]);
        }
        plane_mean[blockIdx.x] = m.mean;
        plane_m2[blockIdx.x] = m.m2;
    }
}

// One warp per group.
__global__ void group_moments(const float* __restrict__ plane_mean,
                              const float* __restrict__ plane_m2,
                              float* __restrict__ group_mean, float* __restrict__ group_rstd,
                              int planes, int spatial, float eps) {
    const int first = blockIdx.x * planes;
    Moments m = {0.0f, 0.0f, 0.0f};
    for (int p = threadIdx.x; p < planes; p += WARP) {
        const Moments plane = {static_cast<float>(spatial), plane_mean[first + p],
                               plane_m2[first + p]};
        m = merge(m, plane);
    }
    m = warp_merge(m);
    if (threadIdx.x == 0) {
        group_mean[blockIdx.x] = m.mean;
        group_rstd[blockIdx.x] = rsqrtf(m.m2 / m.count + eps);
    }
}

__global__ void normalise(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias, const float* __restrict__ group_mean,
                          const float* __restrict__ group_rstd, float* __restrict__ y,
                          int C, int planes, int spatial) {
    const int plane = blockIdx.x;
    // C is a multiple of the planes of a group, so groups never straddle two samples.
    const int group = plane / planes;
    const int c = plane % C;
    const float mean = group_mean[group];
    const float scale = group_rstd[group] * weight[c];
    const float shift = bias[c];
    const long long offset = static_cast<long long>(plane) * spatial;
    for (int i = threadIdx.x; i < spatial; i += THREADS) {
        y[offset + i] = (x[offset + i] - mean) * scale + shift;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int C, int G, int H, int W, float eps) {
    const int spatial = H * W;
    const int planes = C / G;
    float* plane_mean = scratch<float>(B * C);
    float* plane_m2 = scratch<float>(B * C);
    float* group_mean = scratch<float>(B * G);
    float* group_rstd = scratch<float>(B * G);
    plane_moments<<<B * C, THREADS>>>(x, plane_mean, plane_m2, spatial);
    group_moments<<<B * G, WARP>>>(plane_mean, plane_m2, group_mean, group_rstd,
                                   planes, spatial, eps);
    normalise<<<B * C, THREADS>>>(x, weight, bias, group_mean, group_rstd, y,
                                  C, planes, spatial);
}
