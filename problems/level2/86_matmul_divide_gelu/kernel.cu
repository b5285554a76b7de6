// y = gelu((x * weight^T + bias) / divisor).
//
// A warp per output: warps stride through all outputs, columns fast, so that the warps of
// a block share a row of x. Two vectors of each operand are in flight at a time, each with a
// sum of its own.

#include "dot4.cuh"
#include "gelu.cuh"
#include "warp_sum_down.cuh"

static constexpr int WARPS = 8;
static constexpr int MAX_BLOCKS = 16;

__global__ void linear_gelu(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias, float* __restrict__ y,
                            long long outputs, int K, int N, float divisor) {
    const int lane = threadIdx.x;
    const long long first = static_cast<long long>(blockIdx.x) * WARPS + threadIdx.y;
    const long long stride = static_cast<long long>(gridDim.x) * WARPS;
    const int vectors = K % 4 == 0 ? K / 4 : 0;

    for (long long i = first; i < outputs; i += stride) {
        const int col = i % N;
        const float* a = x + i / N * K;
        const float* b = weight + static_cast<long long>(col) * K;
        const float4* a4 = reinterpret_cast<const float4*>(a);
        const float4* b4 = reinterpret_cast<const float4*>(b);

        float sum0 = 0.0f;
        float sum1 = 0.0f;
        int v = lane;
        for (; v + WARP < vectors; v += 2 * WARP) {
            sum0 += dot4(a4[v], b4[v]);
            sum1 += dot4(a4[v + WARP], b4[v + WARP]);
        }
        if (v < vectors) {
            sum0 += dot4(a4[v], b4[v]);
        }
        for (int k = vectors * 4 + lane; k < K; k += WARP) {
            sum0 += a[k] * b[k];
        }
        float sum = sum0 + sum1;
        sum = warp_sum_down(sum);
        if (lane == 0) {
            const float h = (sum + bias[col]) / divisor;
            y[i] = gelu(h);
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float divisor) {
    const long long outputs = static_cast<long long>(B) * N;
    const long long needed = (outputs + WARPS - 1) / WARPS;
    const int blocks = needed < MAX_BLOCKS ? needed : MAX_BLOCKS;
    dim3 block(WARP, WARPS);
    linear_gelu<<<blocks, block>>>(x, weight, bias, y, outputs, K, N, divisor);
}
