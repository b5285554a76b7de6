// y = max(x, 0) over a flat array: grid-stride loop of float4, then the last n % 4
// elements one by one.

static constexpr int THREADS = 256;
static constexpr int MAX_BLOCKS = 256;
static constexpr int VEC = 4;

__device__ __forceinline__ float relu(float v) {
    return fmaxf(v, 0.0f);
}

__global__ void relu_vec4(const float* __restrict__ x, float* __restrict__ y, long long n) {
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long vectors = n / VEC;

    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* y4 = reinterpret_cast<float4*>(y);
    for (long long i = first; i < vectors; i += stride) {
        float4 v = x4[i];
        v.x = relu(v.x);
        v.y = relu(v.y);
        v.z = relu(v.z);
        v.w = relu(v.w);
        y4[i] = v;
    }
    for (long long i = vectors * VEC + first; i < n; i += stride) {
        y[i] = relu(x[i]);
    }
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = static_cast<long long>(B) * D;
    const long long per_block = THREADS * VEC;
    const long long needed = (n + per_block - 1) / per_block;
    const int blocks = needed < MAX_BLOCKS ? needed : MAX_BLOCKS;
    relu_vec4<<<blocks, THREADS>>>(x, y, n);
}
