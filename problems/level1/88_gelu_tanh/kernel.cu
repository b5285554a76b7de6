// GELU in its tanh form over a flat array. A block covers 1024 neighbouring elements; a
// thread takes four of them, a block's width apart, so that every load of a warp is one
// line and four evaluations of tanh are in flight.

static constexpr int THREADS = 256;
static constexpr int ITEMS = 4;
static constexpr float SQRT_2_OVER_PI = 0.7978845608028654f;
static constexpr float CUBIC = 0.044715f;

__device__ __forceinline__ float gelu_tanh(float v) {
    const float inner = SQRT_2_OVER_PI * (v + CUBIC * v * v * v);
    return 0.5f * v * (1.0f + tanhf(inner));
}

__global__ void gelu_strided(const float* __restrict__ x, float* __restrict__ y, long long n) {
    const long long first = static_cast<long long>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    float v[ITEMS];
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const long long at = first + i * THREADS;
        v[i] = at < n ? x[at] : 0.0f;
    }
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const long long at = first + i * THREADS;
        if (at < n) {
            y[at] = gelu_tanh(v[i]);
        }
    }
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const long long per_block = THREADS * ITEMS;
    gelu_strided<<<(n + per_block - 1) / per_block, THREADS>>>(x, y, n);
}
