// Row softmax: one block per row, online maximum and sum, float4 loads with a scalar tail.
constexpr int WARP_SIZE = 32;

struct Pair {
    float max;
    float sum;
};

__device__ __forceinline__ Pair merge(Pair p, Pair q) {
    Pair r;
    r.max = fmaxf(p.max, q.max);
    r.sum = p.sum * expf(p.max - r.max) + q.sum * expf(q.max - r.max);
    return r;
}

__device__ __forceinline__ Pair warp_merge(Pair p) {
    for (int offset = WARP_SIZE / 2; offset > 0; offset >>= 1) {
        Pair q;
        q.max = __shfl_xor_sync(0xffffffffu, p.max, offset);
        q.sum = __shfl_xor_sync(0xffffffffu, p.sum, offset);
        p = merge(p, q);
    }
    return p;
}

extern "C" __global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    extern __shared__ float partial[];
    const int row = blockIdx.x;
    if (row >= rows) return;
    const float* xr = x + (size_t)row * cols;
    float* yr = y + (size_t)row * cols;

    float m = -1e30f;
    float s = 0.0f;
    const bool aligned = (cols & 3) == 0;
    const int vec = aligned ? cols / 4 : 0;
    const float4* x4 = reinterpret_cast<const float4*>(xr);
    for (int i = threadIdx.x; i < vec; i += blockDim.x) {
        const float4 v = x4[i];
        const float local = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        const float next = fmaxf(m, local);
        s = s * expf(m - next) + expf(v.x - next) + expf(v.y - next) + expf(v.z - next) + expf(v.w - next);
        m = next;
    }
    for (int i = vec * 4 + threadIdx.x; i < cols; i += blockDim.x) {
        const float next = fmaxf(m, xr[i]);
        s = s * expf(m - next) + expf(xr[i] - next);
        m = next;
    }

    Pair mine;
    mine.max = m;
    mine.sum = s;
    mine = warp_merge(mine);
    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = threadIdx.x / WARP_SIZE;
    const int warps = blockDim.x / WARP_SIZE;
    if (lane == 0) {
        partial[warp] = mine.max;
        partial[warps + warp] = mine.sum;
    }
    __syncthreads();
    Pair all;
    all.max = lane < warps ? partial[lane] : -1e30f;
    all.sum = lane < warps ? partial[warps + lane] : 0.0f;
    all = warp_merge(all);

    const float inv = 1.0f / all.sum;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        yr[i] = expf(xr[i] - all.max) * inv;
    }
}

void launch(const float* x, float* y, int rows, int cols) {
    const int threads = 256;
    const int warps = threads / WARP_SIZE;
    softmax_rows<<<rows, threads, 2 * warps * sizeof(float)>>>(x, y, rows, cols);
}
