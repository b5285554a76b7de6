// l = logsumexp(x * weight^T + bias) per row, then two LeakyReLU and two GELU.
//
// A block owns eight rows and walks through all columns, sixteen at a time. Every finished
// tile goes straight into a running maximum and sum of exponentials, one pair per thread;
// the sixteen threads of a row merge theirs by shuffles at the end. Nothing of the product
// is ever stored.

#include "gelu.cuh"

static constexpr int ROWS = 8;
static constexpr int COLS = 16;
static constexpr int BK = 32;
static constexpr int THREADS = ROWS * COLS;
static constexpr unsigned FULL_MASK = 0xffffffffu;
static constexpr float SLOPE = 0.01f;

__device__ __forceinline__ float leaky(float v) {
    return v > 0.0f ? v : v * SLOPE;
}

__global__ void gemm_logsumexp(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int B,
                               int K, int N) {
    __shared__ float tile_x[ROWS][BK + 1];
    __shared__ float tile_w[COLS][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * COLS + tx;
    const int row0 = blockIdx.x * ROWS;
    const float* x_rows = x + static_cast<long long>(row0) * K;

    // Finite, so that merging with a thread without columns makes no NaN.
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int col0 = 0; col0 < N; col0 += COLS) {
        const float* w_rows = weight + static_cast<long long>(col0) * K;
        float dot = 0.0f;
        for (int k0 = 0; k0 < K; k0 += BK) {
            const int k = k0 + tid % BK;
            #pragma unroll
            for (int i = tid / BK; i < ROWS; i += THREADS / BK) {
                tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_rows[i * K + k] : 0.0f;
            }
            #pragma unroll
            for (int i = tid / BK; i < COLS; i += THREADS / BK) {
                tile_w[i][tid % BK] = (col0 + i < N && k < K) ? w_rows[i * K + k] : 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < BK; ++i) {
                dot += tile_x[ty][i] * tile_w[tx][i];
            }
            __syncthreads();
        }
        if (col0 + tx < N) {
            const float h = dot + bias[col0 + tx];
            const float higher = fmaxf(top, h);
            sum = sum * expf(top - higher) + expf(h - higher);
            top = higher;
        }
    }

    // A row's sixteen threads are half a warp, which these offsets do not leave.
    #pragma unroll
    for (int offset = COLS / 2; offset > 0; offset /= 2) {
        const float other_top = __shfl_xor_sync(FULL_MASK, top, offset);
        const float other_sum = __shfl_xor_sync(FULL_MASK, sum, offset);
        const float higher = fmaxf(top, other_top);
        sum = sum * expf(top - higher) + other_sum * expf(other_top - higher);
        top = higher;
    }
    if (tx == 0 && row0 + ty < B) {
        y[row0 + ty] = gelu(gelu(leaky(leaky(top + logf(sum)))));
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(COLS, ROWS);
    gemm_logsumexp<<<(B + ROWS - 1) / ROWS, block>>>(x, weight, bias, y, B, K, N);
}
