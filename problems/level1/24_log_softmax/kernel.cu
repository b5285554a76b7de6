// Row-wise log-softmax, y = x - log(sum(exp(x))), for rows too long for one block.
//
// Three kernels: the first leaves the maximum of every chunk and the sum of exponentials
// relative to it, reading a chunk once and keeping it in registers; the second merges a
// row's chunks into one logarithm; the third subtracts it.

static constexpr int WARP = 32;
static constexpr unsigned FULL_MASK = 0xffffffffu;
static constexpr int THREADS = 256;
static constexpr int WARPS = THREADS / WARP;
static constexpr int ITEMS = 8;
static constexpr int CHUNK = THREADS * ITEMS;

struct Max {
    static __device__ __forceinline__ float apply(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ __forceinline__ float apply(float a, float b) { return a + b; }
};

template <typename Op>
__device__ __forceinline__ float warp_reduce(float value) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        value = Op::apply(value, __shfl_xor_sync(FULL_MASK, value, offset));
    }
    return value;
}

// The reduction over the block, in every thread. A slot array serves one call only.
template <typename Op>
__device__ float block_reduce(float value, float* slots) {
    value = warp_reduce<Op>(value);
    if (threadIdx.x % WARP == 0) {
        slots[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    value = slots[0];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) {
        value = Op::apply(value, slots[w]);
    }
    return value;
}

__global__ void chunk_states(const float* __restrict__ x, float* __restrict__ part_top,
                             float* __restrict__ part_sum, int D) {
    __shared__ float top_slots[WARPS];
    __shared__ float sum_slots[WARPS];
    const float* row = x + static_cast<long long>(blockIdx.y) * D;
    const int first = blockIdx.x * CHUNK + threadIdx.x;

    float items[ITEMS];
    float top = -INFINITY;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int col = first + i * THREADS;
        // Minus infinity adds nothing: neither to the maximum nor, by its exp, to the sum.
        items[i] = col < D ? row[col] : -INFINITY;
        top = fmaxf(top, items[i]);
    }
    top = block_reduce<Max>(top, top_slots);

    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        sum += expf(items[i] - top);
    }
    sum = block_reduce<Sum>(sum, sum_slots);

    if (threadIdx.x == 0) {
        const int slot = blockIdx.y * gridDim.x + blockIdx.x;
        part_top[slot] = top;
        part_sum[slot] = sum;
    }
}

// One warp per row.
__global__ void merge_chunks(const float* __restrict__ part_top, const float* __restrict__ part_sum,
                             float* __restrict__ log_sum, int chunks) {
    const float* tops = part_top + blockIdx.x * chunks;
    const float* sums = part_sum + blockIdx.x * chunks;

    float top = -INFINITY;
    for (int c = threadIdx.x; c < chunks; c += WARP) {
        top = fmaxf(top, tops[c]);
    }
    top = warp_reduce<Max>(top);

    float sum = 0.0f;
    for (int c = threadIdx.x; c < chunks; c += WARP) {
        sum += sums[c] * expf(tops[c] - top);
    }
    sum = warp_reduce<Sum>(sum);

    if (threadIdx.x == 0) {
        log_sum[blockIdx.x] = top + logf(sum);
    }
}

__global__ void subtract_log_sum(const float* __restrict__ x, const float* __restrict__ log_sum,
                                 float* __restrict__ y, int D) {
    const long long row = static_cast<long long>(blockIdx.y) * D;
    const float shift = log_sum[blockIdx.y];
    const int first = blockIdx.x * CHUNK + threadIdx.x;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int col = first + i * THREADS;
        if (col < D) {
            y[row + col] = x[row + col] - shift;
        }
    }
}

void launch(const float* x, float* y, int B, int D) {
    const int chunks = (D + CHUNK - 1) / CHUNK;
    float* part_top = scratch<float>(B * chunks);
    float* part_sum = scratch<float>(B * chunks);
    float* log_sum = scratch<float>(B);

    dim3 grid(chunks, B);
    chunk_states<<<grid, THREADS>>>(x, part_top, part_sum, D);
    merge_chunks<<<B, WARP>>>(part_top, part_sum, log_sum, chunks);
    subtract_log_sum<<<grid, THREADS>>>(x, log_sum, y, D);
}
