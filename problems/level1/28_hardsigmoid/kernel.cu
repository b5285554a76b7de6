// y = clamp(x / 6 + 1/2, 0, 1). A row is shared by a few blocks, which stride over it.
//
// Rows of float4 are aligned only if the row length is a multiple of four: the launcher
// picks the instance.

static constexpr int THREADS = 128;
static constexpr int BLOCKS_PER_ROW = 8;

__device__ __forceinline__ float hardsigmoid(float v) {
    return fminf(fmaxf(v * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f);
}

__device__ __forceinline__ float4 hardsigmoid(float4 v) {
    float4 r;
    r.x = hardsigmoid(v.x);
    r.y = hardsigmoid(v.y);
    r.z = hardsigmoid(v.z);
    r.w = hardsigmoid(v.w);
    return r;
}

// `T` is float or float4, `count` the length of a row in elements of T.
template <typename T>
__global__ void hardsigmoid_rows(const float* __restrict__ x, float* __restrict__ y, int count) {
    const long long row = static_cast<long long>(blockIdx.y) * count;
    const T* in = reinterpret_cast<const T*>(x) + row;
    T* out = reinterpret_cast<T*>(y) + row;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        out[i] = hardsigmoid(in[i]);
    }
}

void launch(const float* x, float* y, int B, int D) {
    if (D % 4 == 0) {
        const int count = D / 4;
        const int blocks = min((count + THREADS - 1) / THREADS, BLOCKS_PER_ROW);
        hardsigmoid_rows<float4><<<dim3(blocks, B), THREADS>>>(x, y, count);
    } else {
        const int blocks = min((D + THREADS - 1) / THREADS, BLOCKS_PER_ROW);
        hardsigmoid_rows<float><<<dim3(blocks, B), THREADS>>>(x, y, D);
    }
}
