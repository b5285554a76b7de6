// h = x * weight^T + bias; y = scale * sum over pairs of max(h[2 p], h[2 p + 1]).
//
// A block makes one pair of features for four rows: eight sums a thread, K shared out
// among all its warps. The maximum is taken before anything is stored, so the scratch
// tensor holds one number per pair. A second kernel sums a row's pairs, a warp per row.

#include "dot4.cuh"
#include "warp_sum_down.cuh"

static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;
static constexpr int ROWS = 4;

__global__ void pair_maxima(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias, float* __restrict__ maxima, int B,
                            int K, int P) {
    __shared__ float parts[WARPS][2 * ROWS];
    const int tid = threadIdx.x;
    const int pair = blockIdx.x;
    const int row0 = blockIdx.y * ROWS;
    const float* even = weight + static_cast<long long>(2 * pair) * K;
    const float* odd = even + K;

    float acc[2 * ROWS] = {};
    const int vectors = K % 4 == 0 ? K / 4 : 0;
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 w0 = reinterpret_cast<const float4*>(even)[i];
        const float4 w1 = reinterpret_cast<const float4*>(odd)[i];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            // Rows beyond the last repeat it; their sums are not stored.
            const float* row = x + static_cast<long long>(min(row0 + r, B - 1)) * K;
            const float4 v = reinterpret_cast<const float4*>(row)[i];
            acc[2 * r] += dot4(v, w0);
            acc[2 * r + 1] += dot4(v, w1);
        }
    }
    for (int k = vectors * 4 + tid; k < K; k += THREADS) {
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float v = x[static_cast<long long>(min(row0 + r, B - 1)) * K + k];
            acc[2 * r] += v * even[k];
            acc[2 * r + 1] += v * odd[k];
        }
    }

    #pragma unroll
    for (int i = 0; i < 2 * ROWS; ++i) {
        acc[i] = warp_sum_down(acc[i]);
        if (tid % WARP == 0) {
            parts[tid / WARP][i] = acc[i];
        }
    }
    __syncthreads();
    if (tid < ROWS && row0 + tid < B) {
        float first = bias[2 * pair];
        float second = bias[2 * pair + 1];
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            first += parts[w][2 * tid];
            second += parts[w][2 * tid + 1];
        }
        maxima[static_cast<long long>(row0 + tid) * P + pair] = fmaxf(first, second);
    }
}

__global__ void sum_pairs(const float* __restrict__ maxima, float* __restrict__ y, int B, int P,
                          float scale_factor) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * WARPS + threadIdx.y;
    if (row >= B) {
        return;
    }
    float sum = 0.0f;
    for (int p = lane; p < P; p += WARP) {
        sum += maxima[static_cast<long long>(row) * P + p];
    }
    sum = warp_sum_down(sum);
    if (lane == 0) {
        y[row] = sum * scale_factor;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int P,
            float scale_factor) {
    float* maxima = scratch<float>(static_cast<long long>(B) * P);
    dim3 grid(P, (B + ROWS - 1) / ROWS);
    pair_maxima<<<grid, THREADS>>>(x, weight, bias, maxima, B, K, P);
    dim3 block(WARP, WARPS);
    sum_pairs<<<(B + WARPS - 1) / WARPS, block>>>(maxima, y, B, P, scale_factor);
}
