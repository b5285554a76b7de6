// m = max over features of x * weight^T + bias; y = gelu(m - mean(m)), the mean of a
// single number.
//
// One block per row. Warps take features in turn and keep the largest they have seen; the
// first warp merges the warps' maxima.

#include "gelu.cuh"
#include "warp_sum.cuh"

static constexpr int WARPS = 8;

__global__ void linear_max_gelu(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int K,
                                int N) {
    __shared__ float warp_max[WARPS];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const float* row = x + static_cast<long long>(blockIdx.x) * K;

    float largest = -INFINITY;
    for (int n = warp; n < N; n += WARPS) {
        const float* w = weight + static_cast<long long>(n) * K;
        float dot = 0.0f;
        for (int k = lane; k < K; k += WARP) {
            dot += row[k] * w[k];
        }
        dot = warp_sum(dot);
        largest = fmaxf(largest, dot + bias[n]);
    }
    if (lane == 0) {
        warp_max[warp] = largest;
    }
    __syncthreads();

    if (warp == 0) {
        largest = lane < WARPS ? warp_max[lane] : -INFINITY;
        #pragma unroll
        for (int offset = WARPS / 2; offset > 0; offset /= 2) {
            largest = fmaxf(largest, __shfl_down_sync(FULL_MASK, largest, offset));
        }
        if (lane == 0) {
            const float mean = largest / 1.0f;
            const float v = largest - mean;
            y[blockIdx.x] = gelu(v);
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(WARP, WARPS);
    linear_max_gelu<<<B, block>>>(x, weight, bias, y, K, N);
}
