// y = min(max(x, -1), 1) over a flat array. Every warp owns a contiguous segment, which
// its lanes walk side by side.

static constexpr int WARP = 32;
static constexpr int WARPS = 4;
static constexpr int STEPS = 16;
static constexpr int SEGMENT = WARP * STEPS;
static constexpr float LOWER = -1.0f;
static constexpr float UPPER = 1.0f;

__global__ void hardtanh_segments(const float* __restrict__ x, float* __restrict__ y,
                                  long long n) {
    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;
    const long long begin = (static_cast<long long>(blockIdx.x) * WARPS + warp) * SEGMENT;
    const long long left = n - begin;
    const int count = left < SEGMENT ? static_cast<int>(left) : SEGMENT;
    for (int i = lane; i < count; i += WARP) {
        y[begin + i] = fminf(fmaxf(x[begin + i], LOWER), UPPER);
    }
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const long long per_block = WARPS * SEGMENT;
    hardtanh_segments<<<(n + per_block - 1) / per_block, WARPS * WARP>>>(x, y, n);
}
