// y = x / ||x||, the Frobenius norm of the whole tensor.
//
// The blocks leave partial sums of squares; the block that finishes last, told by an
// atomic counter, adds them up. A second kernel divides.

static constexpr int THREADS = 256;
static constexpr int MAX_BLOCKS = 32;
static constexpr int VEC = 4;

// The sum over the block, in every thread.
__device__ float block_sum(float value) {
    __shared__ float partial[THREADS];
    const int tid = threadIdx.x;
    partial[tid] = value;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            partial[tid] += partial[tid + half];
        }
        __syncthreads();
    }
    return partial[0];
}

__global__ void frobenius_norm(const float* __restrict__ x, float* part, unsigned int* done,
                               float* __restrict__ norm, long long n) {
    __shared__ bool is_last;
    const int tid = threadIdx.x;
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    const long long first = static_cast<long long>(blockIdx.x) * THREADS + tid;
    const long long vectors = n / VEC;
    const float4* x4 = reinterpret_cast<const float4*>(x);

    float sum = 0.0f;
    for (long long i = first; i < vectors; i += stride) {
        const float4 v = x4[i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (long long i = vectors * VEC + first; i < n; i += stride) {
        sum += x[i] * x[i];
    }
    sum = block_sum(sum);

    if (tid == 0) {
        part[blockIdx.x] = sum;
        // The partial sum must be visible to all before the counter says that it is there.
        __threadfence();
        is_last = atomicAdd(done, 1u) == gridDim.x - 1;
        // And the other blocks' sums must not be read before the counter.
        __threadfence();
    }
    __syncthreads();
    if (is_last) {
        float total = tid < gridDim.x ? part[tid] : 0.0f;
        total = block_sum(total);
        if (tid == 0) {
            *norm = sqrtf(total);
        }
    }
}

__global__ void divide(const float* __restrict__ x, const float* __restrict__ norm,
                       float* __restrict__ y, long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n) {
        y[i] = x[i] / *norm;
    }
}

void launch(const float* x, float* y, int B, int C, int H, int W) {
    const long long n = static_cast<long long>(B) * C * H * W;
    const long long per_block = THREADS * VEC;
    const long long needed = (n + per_block - 1) / per_block;
    const int blocks = needed < MAX_BLOCKS ? needed : MAX_BLOCKS;
    float* part = scratch<float>(blocks);
    float* norm = scratch<float>(1);
    unsigned int* done = scratch<unsigned int>(1);
    cudaMemset(done, 0, sizeof(unsigned int));
    frobenius_norm<<<blocks, THREADS>>>(x, part, done, norm, n);
    divide<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, norm, y, n);
}
