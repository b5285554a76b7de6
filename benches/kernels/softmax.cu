// A block for each row: maximum and sum by warp shuffles and shared memory.
__device__ float block_reduce(float v, float* scratch, bool maximum) {
    for (int o = 16; o > 0; o >>= 1) {
        const float other = __shfl_down_sync(0xffffffffu, v, o);
        v = maximum ? fmaxf(v, other) : v + other;
    }
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    if (lane == 0) {
        scratch[warp] = v;
    }
    __syncthreads();
    if (warp == 0) {
        const int warps = blockDim.x / 32;
        v = lane < warps ? scratch[lane] : (maximum ? -3.4e38f : 0.0f);
        for (int o = 16; o > 0; o >>= 1) {
            const float other = __shfl_down_sync(0xffffffffu, v, o);
            v = maximum ? fmaxf(v, other) : v + other;
        }
        if (lane == 0) {
            scratch[0] = v;
        }
    }
    __syncthreads();
    v = scratch[0];
    __syncthreads();
    return v;
}

extern "C" __global__ void softmax(const float* x, float* y, int d) {
    __shared__ float scratch[32];
    const float* row = x + static_cast<long long>(blockIdx.x) * d;
    float* out = y + static_cast<long long>(blockIdx.x) * d;
    float top = -3.4e38f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        top = fmaxf(top, row[i]);
    }
    top = block_reduce(top, scratch, true);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        sum += expf(row[i] - top);
    }
    sum = block_reduce(sum, scratch, false);
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[i] = expf(row[i] - top) / sum;
    }
}
