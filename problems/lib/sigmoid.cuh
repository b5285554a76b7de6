#pragma once

// 1 / (1 + e^-v); a very negative v overflows the exponential to infinity, which gives zero.
__device__ __forceinline__ float sigmoid(float v) {
    return 1.0f / (1.0f + expf(-v));
}
