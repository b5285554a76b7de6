#pragma once

// log(1 + e^v), from the side that cannot overflow.
__device__ __forceinline__ float softplus(float v) {
    return fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v)));
}
