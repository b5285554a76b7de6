// y = log(1 + exp(x)), the identity above the threshold of 20, as an operator object in a
// generic grid-stride kernel.

static constexpr int THREADS = 256;
static constexpr int MAX_BLOCKS = 128;

struct Softplus {
    float threshold;

    __device__ __forceinline__ float operator()(float v) const {
        // log1pf: for negative v the exponential vanishes against the one.
        return v > threshold ? v : log1pf(expf(v));
    }
};

template <typename Op>
__global__ void map_elements(const float* __restrict__ x, float* __restrict__ y, int n,
                             float threshold) {
    const Op op{threshold};
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = op(x[i]);
    }
}

void launch(const float* x, float* y, int B, int D) {
    // 1.6e9 elements at the official extents, and n + stride still fits into 31 bits.
    const int n = B * D;
    int blocks = (n + THREADS - 1) / THREADS;
    if (blocks > MAX_BLOCKS) {
        blocks = MAX_BLOCKS;
    }
    map_elements<Softplus><<<blocks, THREADS>>>(x, y, n, 20.0f);
}
