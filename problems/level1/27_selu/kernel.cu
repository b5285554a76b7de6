// SELU over a flat array. A block covers a contiguous tile of 2048 elements; its threads
// walk it side by side in eight unrolled steps.

static constexpr int THREADS = 256;
static constexpr int STEPS = 8;
static constexpr int TILE = THREADS * STEPS;
static constexpr float SCALE = 1.0507009873554805f;
static constexpr float ALPHA = 1.6732632423543773f;

__device__ __forceinline__ float selu(float v) {
    // expm1f keeps its digits near zero, where expf(v) - 1 would cancel them.
    return SCALE * (v > 0.0f ? v : ALPHA * expm1f(v));
}

__global__ void selu_tiles(const float* __restrict__ x, float* __restrict__ y, long long n) {
    const long long base = static_cast<long long>(blockIdx.x) * TILE;
    #pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const long long i = base + step * THREADS + threadIdx.x;
        if (i < n) {
            y[i] = selu(x[i]);
        }
    }
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    selu_tiles<<<(n + TILE - 1) / TILE, THREADS>>>(x, y, n);
}
