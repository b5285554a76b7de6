// y[b] = sum over n of (x[b] . weight[n] + bias[n]). The maximum, the mean and the two
// LogSumExp that follow work on a single entry and change nothing.
//
// One block per row of x. Its warps share the features out among themselves, each lane
// keeps one running sum over all of its warp's dot products, and the lanes meet once, at
// the end.

#include "warp_sum.cuh"

static constexpr int WARPS = 4;

__global__ void linear_summed(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int K,
                              int N) {
    __shared__ float warp_sums[WARPS];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const float* row = x + static_cast<long long>(blockIdx.x) * K;
    // Rows of both matrices begin on 16 bytes only if K is a multiple of four.
    const int vectors = K % 4 == 0 ? K / 4 : 0;
    const float4* row4 = reinterpret_cast<const float4*>(row);

    float sum = 0.0f;
    for (int n = warp; n < N; n += WARPS) {
        const float* w = weight + static_cast<long long>(n) * K;
        const float4* w4 = reinterpret_cast<const float4*>(w);
        for (int i = lane; i < vectors; i += WARP) {
            const float4 a = row4[i];
            const float4 b = w4[i];
            sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
        for (int k = vectors * 4 + lane; k < K; k += WARP) {
            sum += row[k] * w[k];
        }
        if (lane == 0) {
            sum += bias[n];
        }
    }

    sum = warp_sum(sum);
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();
    if (warp == 0 && lane == 0) {
        float total = 0.0f;
        #pragma unroll
        for (int i = 0; i < WARPS; ++i) {
            total += warp_sums[i];
        }
        y[blockIdx.x] = total;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(WARP, WARPS);
    linear_summed<<<B, block>>>(x, weight, bias, y, K, N);
}
