// LayerNorm over the last three dimensions of x[B, C, H, W], D = C * H * W elements a row.
//
// A row is far too long for one block, so the work is two kernels: the first leaves a
// count-mean-M2 triple per chunk of a row (Welford within a thread, Chan's merge between
// threads), the second merges a row's triples once more and normalises.

static constexpr int THREADS = 256;
static constexpr int WARP = 32;
static constexpr int WARPS = THREADS / WARP;
static constexpr unsigned FULL_MASK = 0xffffffffu;
static constexpr int CHUNK = 4096;
static constexpr int MAX_CHUNKS = 128;
static constexpr int APPLY_PER_THREAD = 8;

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
    Moments out;
    out.count = count;
    out.mean = a.mean + delta * share;
    out.m2 = a.m2 + b.m2 + delta * delta * a.count * share;
    return out;
}

__device__ __forceinline__ Moments warp_merge(Moments m) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset >>= 1) {
        Moments other;
        other.count = __shfl_down_sync(FULL_MASK, m.count, offset);
        other.mean = __shfl_down_sync(FULL_MASK, m.mean, offset);
        other.m2 = __shfl_down_sync(FULL_MASK, m.m2, offset);
        m = merge(m, other);
    }
    return m;
}

__global__ void layer_norm_moments(const float* __restrict__ x, float* __restrict__ part_mean,
                                   float* __restrict__ part_m2, int D, int per_chunk) {
    __shared__ Moments partial[WARPS];
    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;
    const float* row = x + static_cast<long long>(blockIdx.y) * D;
    const int begin = blockIdx.x * per_chunk;
    const int end = min(begin + per_chunk, D);

    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = begin + threadIdx.x; i < end; i += THREADS) {
        const float v = row[i];
        m.count += 1.0f;
        const float delta = v - m.mean;
        m.mean += delta / m.count;
        m.m2 += delta * (v - m.mean);
    }

    m = warp_merge(m);
    if (lane == 0) {
        partial[warp] = m;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; ++w) {
            m = merge(m, partial[w]);
        }
        const int slot = blockIdx.y * gridDim.x + blockIdx.x;
        part_mean[slot] = m.mean;
        part_m2[slot] = m.m2;
    }
}

__global__ void layer_norm_apply(const float* __restrict__ x, const float* __restrict__ weight,
                                 const float* __restrict__ bias,
                                 const float* __restrict__ part_mean,
                                 const float* __restrict__ part_m2, float* __restrict__ y,
                                 int D, int per_chunk, int chunks, float eps) {
    __shared__ float row_mean;
    __shared__ float row_rstd;
    const int tid = threadIdx.x;

    if (tid < WARP) {
        Moments m = {0.0f, 0.0f, 0.0f};
        for (int c = tid; c < chunks; c += WARP) {
            const int slot = blockIdx.y * chunks + c;
            // The counts follow from the chunking, so they are not stored.
            const int count = min(per_chunk, D - c * per_chunk);
            const Moments chunk = {static_cast<float>(count), part_mean[slot], part_m2[slot]};
            m = merge(m, chunk);
        }
        m = warp_merge(m);
        if (tid == 0) {
            row_mean = m.mean;
            row_rstd = rsqrtf(m.m2 / m.count + eps);
        }
    }
    __syncthreads();

    const float mean = row_mean;
    const float rstd = row_rstd;
    const long long offset = static_cast<long long>(blockIdx.y) * D;
    const int stride = gridDim.x * THREADS;
    for (int i = blockIdx.x * THREADS + tid; i < D; i += stride) {
        y[offset + i] = (x[offset + i] - mean) * rstd * weight[i] + bias[i];
    }
}
