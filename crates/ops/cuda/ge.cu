// ge: whether input is at least other, broadcast.
#include "plain.cuh"

__global__ void ge_kernel(const T* input, const long long* input_strides, const T* other,
                          const long long* other_strides, bool* y, const long long* shape, long long rank,
                          long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T a = input[place(i, shape, input_strides, rank)];
    T b = other[place(i, shape, other_strides, rank)];
    y[i] = a >= b;
}

void launch(const T* input, const long long* input_strides, const T* other, const long long* other_strides,
            bool* y, const long long* shape, long long rank, long long count) {
    ge_kernel<<<blocks(count), THREADS>>>(input, input_strides, other, other_strides, y, shape, rank,
                                          count);
}
