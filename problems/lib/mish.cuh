#pragma once
#include "softplus.cuh"

// v * tanh(softplus(v)).
__device__ __forceinline__ float mish(float v) {
    return v * tanhf(softplus(v));
}
