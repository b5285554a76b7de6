// C = A * B with a very long inner dimension: A is [M, K], B is [K, 1].
//
// One block per row of A. Threads stride over the row in float4 steps, then the
// partial sums meet in two stages: warp shuffles, and one slot per warp in shared
// memory.

static constexpr int THREADS = 256;
static constexpr int WARP = 32;
static constexpr int WARPS = THREADS / WARP;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float value) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(FULL_MASK, value, offset);
    }
    return value;
}

__device__ float block_sum(float value) {
    __shared__ float partial[WARPS];
    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;

    value = warp_sum(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = lane < WARPS ? partial[lane] : 0.0f;
        value = warp_sum(value);
    }
    return value;
}

__global__ void matvec_rows(const float* __restrict__ A, const float* __restrict__ B,
                            float* __restrict__ C, int K) {
    // M * K reaches 2^31 at the official extents: the row offset must be 64 bits wide.
    const float* row = A + static_cast<long long>(blockIdx.x) * K;
    const int tid = threadIdx.x;

    // A row starts on a 16-byte boundary only if K is a multiple of four.
    const int vectors = (K % 4 == 0) ? K / 4 : 0;
    const float4* row4 = reinterpret_cast<const float4*>(row);
    const float4* b4 = reinterpret_cast<const float4*>(B);

    float sum = 0.0f;
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 a = row4[i];
        const float4 b = b4[i];
        sum += a.x * b.x;
        sum += a.y * b.y;
        sum += a.z * b.z;
        sum += a.w * b.w;
    }
    for (int k = vectors * 4 + tid; k < K; k += THREADS) {
        sum += row[k] * B[k];
    }

    sum = block_sum(sum);
    if (tid == 0) {
        C[blockIdx.x] = sum;
    }
}

void launch(const float* A, const float* B, float* C, int M, int K) {
    matvec_rows<<<M, THREADS>>>(A, B, C, K);
}
