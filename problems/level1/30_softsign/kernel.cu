// y = x / (1 + |x|) over a flat array, divided into one contiguous chunk per block of a
// fixed grid.

static constexpr int THREADS = 192;
static constexpr int BLOCKS = 192;

__global__ void softsign_chunks(const float* __restrict__ x, float* __restrict__ y, long long n,
                                long long chunk) {
    const long long begin = blockIdx.x * chunk;
    long long end = begin + chunk;
    if (end > n) {
        end = n;
    }
    for (long long i = begin + threadIdx.x; i < end; i += THREADS) {
        const float v = x[i];
        y[i] = v / (1.0f + fabsf(v));
    }
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const long long chunk = (n + BLOCKS - 1) / BLOCKS;
    softsign_chunks<<<BLOCKS, THREADS>>>(x, y, n, chunk);
}
