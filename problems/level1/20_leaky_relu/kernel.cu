// y = x for positive x, slope * x otherwise, over a flat array.
//
// A block covers one contiguous tile; every thread issues both of its float4 loads before
// it needs the first. The last tile, if it is partly filled, goes element by element.

static constexpr int THREADS = 128;
static constexpr int VEC = 4;
static constexpr int IN_FLIGHT = 2;
static constexpr int TILE = THREADS * VEC * IN_FLIGHT;

__device__ __forceinline__ float leaky_relu(float v, float slope) {
    return v > 0.0f ? v : v * slope;
}

__global__ void leaky_relu_tiles(const float* __restrict__ x, float* __restrict__ y,
                                 long long n, float slope) {
    const long long base = static_cast<long long>(blockIdx.x) * TILE;
    const int tid = threadIdx.x;

    if (base + TILE <= n) {
        const float4* in = reinterpret_cast<const float4*>(x + base);
        float4* out = reinterpret_cast<float4*>(y + base);
        float4 v[IN_FLIGHT];
        #pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            v[u] = in[u * THREADS + tid];
        }
        #pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            float4 r;
            r.x = leaky_relu(v[u].x, slope);
            r.y = leaky_relu(v[u].y, slope);
            r.z = leaky_relu(v[u].z, slope);
            r.w = leaky_relu(v[u].w, slope);
            out[u * THREADS + tid] = r;
        }
    } else {
        for (long long i = base + tid; i < n; i += THREADS) {
            y[i] = leaky_relu(x[i], slope);
        }
    }
}

void launch(const float* x, float* y, int B, int D, float negative_slope) {
    const long long n = static_cast<long long>(B) * D;
    const long long tiles = (n + TILE - 1) / TILE;
    leaky_relu_tiles<<<tiles, THREADS>>>(x, y, n, negative_slope);
}
