// abs: |x|.
#include "plain.cuh"

__device__ float magnitude(float x) {
    return fabsf(x);
}

__device__ long long magnitude(long long x) {
    return x < 0 ? -x : x;
}

__global__ void abs_kernel(const T* input, const long long* input_strides, T* y, const long long* shape,
                           long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T x = input[place(i, shape, input_strides, rank)];
    y[i] = magnitude(x);
}

void launch(const T* input, const long long* input_strides, T* y, const long long* shape, long long rank,
            long long count) {
    abs_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
