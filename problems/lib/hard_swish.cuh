#pragma once

// v * clamp(v + 3, 0, 6) / 6.
__device__ __forceinline__ float hard_swish(float v) {
    return v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f;
}
