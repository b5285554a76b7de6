// Argmax of a vector: grid-stride scan, shared reduction, last block finishes. Ties go to the smaller index.
__device__ unsigned int arrived = 0;

__device__ __forceinline__ bool better(float v, int i, float best, int at) {
    return v > best || (v == best && i < at);
}

__global__ void argmax(const float* __restrict__ x, volatile float* values, volatile int* places,
                       long long* __restrict__ out, int n) {
    __shared__ float sv[256];
    __shared__ int si[256];
    __shared__ bool last;
    const unsigned tid = threadIdx.x;

    float best = __int_as_float(0xff800000);
    int at = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (better(x[i], i, best, at)) {
            best = x[i];
            at = i;
        }
    }
    sv[tid] = best;
    si[tid] = at;
    __syncthreads();
    for (unsigned s = blockDim.x >> 1; s > 0; s >>= 1) {
        if (tid < s && better(sv[tid + s], si[tid + s], sv[tid], si[tid])) {
            sv[tid] = sv[tid + s];
            si[tid] = si[tid + s];
        }
        __syncthreads();
    }
    if (tid == 0) {
        values[blockIdx.x] = sv[0];
        places[blockIdx.x] = si[0];
        __threadfence();
        last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && tid == 0) {
        for (unsigned b = 0; b < gridDim.x; ++b) {
            if (b == 0 || better(values[b], places[b], best, at)) {
                best = values[b];
                at = places[b];
            }
        }
        out[0] = at;
        arrived = 0;
    }
}

void launch(const float* x, long long* out, int n) {
    const int blocks = max(1, min((n + 255) / 256, 64));
    float* values = scratch<float>(blocks);
    int* places = scratch<int>(blocks);
    argmax<<<blocks, 256>>>(x, values, places, out, n);
}
