// ELU over a flat array: a grid-stride loop of float4 that fetches its next vector before
// it computes the present one, then the last n % 4 elements one by one.

static constexpr int THREADS = 128;
static constexpr int MAX_BLOCKS = 48;
static constexpr int VEC = 4;

__device__ __forceinline__ float elu(float v, float alpha) {
    return v > 0.0f ? v : alpha * expm1f(v);
}

__global__ void elu_prefetch(const float* __restrict__ x, float* __restrict__ y, long long n,
                             float alpha) {
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    const long long first = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    const long long vectors = n / VEC;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* y4 = reinterpret_cast<float4*>(y);

    long long i = first;
    if (i < vectors) {
        float4 now = x4[i];
        while (true) {
            const long long next = i + stride;
            const bool more = next < vectors;
            float4 later = now;
            if (more) {
                later = x4[next];
            }
            float4 r;
            r.x = elu(now.x, alpha);
            r.y = elu(now.y, alpha);
            r.z = elu(now.z, alpha);
            r.w = elu(now.w, alpha);
            y4[i] = r;
            if (!more) {
                break;
            }
            now = later;
            i = next;
        }
    }

    for (long long k = vectors * VEC + first; k < n; k += stride) {
        y[k] = elu(x[k], alpha);
    }
}

void launch(const float* x, float* y, int B, int D, float alpha) {
    const long long n = static_cast<long long>(B) * D;
    const long long per_block = THREADS * VEC;
    const long long needed = (n + per_block - 1) / per_block;
    const int blocks = needed < MAX_BLOCKS ? needed : MAX_BLOCKS;
    elu_prefetch<<<blocks, THREADS>>>(x, y, n, alpha);
}
