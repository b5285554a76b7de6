// y = x / mean(|x|) along the rows of x[B, D]: one block per row, two passes over it.

static constexpr int THREADS = 512;
static constexpr int WARP = 32;
static constexpr int WARPS = THREADS / WARP;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float value) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset >>= 1) {
        value += __shfl_down_sync(FULL_MASK, value, offset);
    }
    return value;
}

__global__ void l1_norm_rows(const float* __restrict__ x, float* __restrict__ y, int D) {
    __shared__ float partial[WARPS];
    __shared__ float row_mean;
    const long long offset = static_cast<long long>(blockIdx.x) * D;
    const float* in = x + offset;
    float* out = y + offset;
    const int tid = threadIdx.x;

    float sum = 0.0f;
    for (int i = tid; i < D; i += THREADS) {
        sum += fabsf(in[i]);
    }
    sum = warp_sum(sum);
    if (tid % WARP == 0) {
        partial[tid / WARP] = sum;
    }
    __syncthreads();
    if (tid < WARP) {
        sum = warp_sum(tid < WARPS ? partial[tid] : 0.0f);
        if (tid == 0) {
            row_mean = sum / D;
        }
    }
    __syncthreads();

    const float mean = row_mean;
    for (int i = tid; i < D; i += THREADS) {
        out[i] = in[i] / mean;
    }
}

void launch(const float* x, float* y, int B, int D) {
    l1_norm_rows<<<B, THREADS>>>(x, y, D);
}
