#pragma once

// v * sigmoid(v), also called SiLU.
__device__ __forceinline__ float swish(float v) {
    return v / (1.0f + expf(-v));
}
