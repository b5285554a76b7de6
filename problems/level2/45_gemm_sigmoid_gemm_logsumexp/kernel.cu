// h = sigmoid(x * weight1^T + bias1); y = logsumexp(h * weight2^T + bias2) per row.
//
// The first GEMM stages 8x8 tiles through shared memory and leaves h in a scratch tensor. In the
// second kernel a block owns a row: warps make the outputs in turn, and since each output is
// needed only once, it goes straight into the warp's running maximum and scaled sum. h lies within
// (0, 1) and is kept in half precision; sums stay in float.

#include <cuda_fp16.h>

#include "sigmoid.cuh"
#include "warp_sum.cuh"

static constexpr int TILE = 8;
static constexpr int BK = 32;
static constexpr int THREADS = TILE * TILE;
static constexpr int WARPS = 4;

__global__ void gemm_sigmoid(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, __half* __restrict__ h, int B, int K,
                             int H) {
    __shared__ float tile_x[TILE][BK + 1];
    __shared__ float tile_w[TILE][BK + 1];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int r = tid / BK; r < TILE; r += THREADS / BK) {
            tile_x[r][tid % BK] =
                (row0 + r < B && k < K) ? x_tile[r * K + k] : 0.0f;
            tile_w[r][tid % BK] =
                (col0 + r < H && k < K) ? w_tile[r * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            sum += tile_x[ty][i] * tile_w[tx][i];
        }
        __syncthreads();
    }
    if (row0 + ty < B && col0 + tx < H) {
        const float v = sum + bias[col0 + tx];
        h[static_cast<long long>(row0 + ty) * H + col0 + tx] = __float2half_rn(sigmoid(v));
    }
}

__global__ void gemm_logsumexp(const __half* __restrict__ h, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int H,
                               int N) {
    __shared__ float part_top[WARPS];
    __shared__ float part_sum[WARPS];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const __half* row = h + static_cast<long long>(blockIdx.x) * H;

    // A warp without any output keeps a finite maximum and an empty sum.
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int n = warp; n < N; n += WARPS) {
        const float* w = weight + static_cast<long long>(n) * H;
        float v = 0.0f;
        for (int i = lane; i < H; i += WARP) {
            v += __half2float(row[i]) * w[i];
        }
        v = warp_sum(v);
        v += bias[n];
        const float higher = fmaxf(top, v);
        sum = sum * expf(top - higher) + expf(v - higher);
        top = higher;
    }
    if (lane == 0) {
        part_top[warp] = top;
        part_sum[warp] = sum;
    }
    __syncthreads();
    if (warp == 0 && lane == 0) {
        #pragma unroll
        for (int i = 1; i < WARPS; ++i) {
            const float higher = fmaxf(top, part_top[i]);
            sum = sum * expf(top - higher) + part_sum[i] * expf(part_top[i] - higher);
            top = higher;
        }
        y[blockIdx.x] = top + logf(sum);
    }
}

void launch(const float* x, const float* weight1, const float* bias1, const float* weight2,
            const float* bias2, float* y, int B, int K, int H, int N) {
    __half* h = scratch<__half>(static_cast<long long>(B) * H);
    dim3 block(TILE, TILE);
    dim3 grid((H + TILE - 1) / TILE, (B + TILE - 1) / TILE);
    gemm_sigmoid<<<grid, block>>>(x, weight1, bias1, h, B, K, H);
    dim3 row_block(WARP, WARPS);
    gemm_logsumexp<<<B, row_block>>>(h, weight2, bias2, y, H, N);
}
