// InstanceNorm of x[B, C, H, W] without weight and bias: one block per plane reads it
// three times, for the mean, for the variance about it, and to write the result.

#include "warp_sum.cuh"

static constexpr int THREADS = 512;
static constexpr int WARPS = THREADS / WARP;

// The sum over the block, in every thread. A slot array serves one call only.
__device__ __forceinline__ float block_sum(float value, float* slots) {
    const int lane = threadIdx.x % WARP;
    value = warp_sum(value);
    if (lane == 0) {
        slots[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    return warp_sum(lane < WARPS ? slots[lane] : 0.0f);
}

__device__ __forceinline__ float square(float v) {
    return v * v;
}

__global__ void instance_norm_planes(const float* __restrict__ x, float* __restrict__ y,
                                     int spatial, float eps) {
    __shared__ float sum_slots[WARPS];
    __shared__ float square_slots[WARPS];
    const long long offset = static_cast<long long>(blockIdx.x) * spatial;
    const float* in = x + offset;
    float* out = y + offset;
    const int tid = threadIdx.x;

    // Planes are 16-byte aligned only if their size is a multiple of four.
    const int vectors = spatial % 4 == 0 ? spatial / 4 : 0;
    const float4* in4 = reinterpret_cast<const float4*>(in);
    float4* out4 = reinterpret_cast<float4*>(out);

    float sum = 0.0f;
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 v = in4[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    for (int i = vectors * 4 + tid; i < spatial; i += THREADS) {
        sum += in[i];
    }
    const float mean = block_sum(sum, sum_slots) / spatial;

    float sum_sq = 0.0f;
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 v = in4[i];
        sum_sq += square(v.x - mean) + square(v.y - mean)
                + square(v.z - mean) + square(v.w - mean);
    }
    for (int i = vectors * 4 + tid; i < spatial; i += THREADS) {
        sum_sq += square(in[i] - mean);
    }
    const float rstd = rsqrtf(block_sum(sum_sq, square_slots) / spatial + eps);

    for (int i = tid; i < vectors; i += THREADS) {
        float4 v = in4[i];
        v.x = (v.x - mean) * rstd;
        v.y = (v.y - mean) * rstd;
        v.z = (v.z - mean) * rstd;
        v.w = (v.w - mean) * rstd;
        out4[i] = v;
    }
    for (int i = vectors * 4 + tid; i < spatial; i += THREADS) {
        out[i] = (in[i] - mean) * rstd;
    }
}

void launch(const float* x, float* y, int B, int C, int H, int W, float eps) {
    instance_norm_planes<<<B * C, THREADS>>>(x, y, H * W, eps);
}
