// y = tanh(x) over a flat array: a grid-stride loop, unrolled by four so that four loads
// are in flight, and a plain one for what is left.

static constexpr int THREADS = 256;
static constexpr int BLOCKS = 32;
static constexpr int UNROLL = 4;

__global__ void tanh_unrolled(const float* __restrict__ x, float* __restrict__ y, long long n) {
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;

    for (; i + (UNROLL - 1) * stride < n; i += UNROLL * stride) {
        float v[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            v[u] = x[i + u * stride];
        }
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            y[i + u * stride] = tanhf(v[u]);
        }
    }
    for (; i < n; i += stride) {
        y[i] = tanhf(x[i]);
    }
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const long long needed = (n + THREADS - 1) / THREADS;
    const int blocks = needed < BLOCKS ? needed : BLOCKS;
    tanh_unrolled<<<blocks, THREADS>>>(x, y, n);
}
