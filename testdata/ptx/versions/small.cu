// Block sums with a warp shuffle, an atomic, a divergent loop and printf: what most kernels use.
extern "C" __device__ __noinline__ float grow(float x, int n) { return n <= 0 ? x : grow(x * 1.5f + 1.f, n - 1); }
extern "C" __global__ void sums(const float *x, float *y, int n) {
    __shared__ float part[8];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float v = i < n ? x[i] : 0.f;
    for (int k = 16; k > 0; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
    if (t % 32 == 0) part[t / 32] = v;
    __syncthreads();
    if (t == 0) {
        float s = 0.f;
        for (int k = 0; k < blockDim.x / 32; k++) s += part[k];
        atomicAdd(y, s);
        y[1 + blockIdx.x] = expf(s * 1e-3f) / (1.f + sqrtf(fabsf(s))) + grow(s, n & 3);
    }
}
extern "C" __global__ void packs(const float2 *x, float2 *y, const double *a, double *b, long long *c) {
    int t = threadIdx.x;
    float2 u = x[t], w = x[t + 1];
    y[t] = make_float2(fmaf(u.x, w.x, u.y), fminf(fminf(u.x, w.y), w.x));
    b[t] = sqrt(a[t]) + a[t] / 3.0;
    c[t] = c[t] * 1000003 % 4096 + __popcll(c[t]);
}
