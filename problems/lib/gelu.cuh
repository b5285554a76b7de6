#pragma once

static constexpr float INV_SQRT_2 = 0.70710678118654752f;

// GELU in its exact form, through the error function.
__device__ __forceinline__ float gelu(float v) {
    return 0.5f * v * (1.0f + erff(v * INV_SQRT_2));
}
