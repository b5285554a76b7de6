// clamp: min(max(input, min), max) with what is given of the two bounds, broadcast.
#include "plain.cuh"

__global__ void clamp_kernel(const T* input, const long long* input_strides, const T* min,
                             const long long* min_strides, const T* max, const long long* max_strides, T* y,
                             const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T x = input[place(i, shape, input_strides, rank)];
    if (min) x = larger(x, min[place(i, shape, min_strides, rank)]);
    if (max) x = smaller(x, max[place(i, shape, max_strides, rank)]);
    y[i] = x;
}

void launch(const T* input, const long long* input_strides, const T* min, const long long* min_strides,
            const T* max, const long long* max_strides, T* y, const long long* shape, long long rank,
            long long count) {
    clamp_kernel<<<blocks(count), THREADS>>>(input, input_strides, min, min_strides, max, max_strides, y,
                                             shape, rank, count);
}
