// neg: -x.
#include "plain.cuh"

__global__ void neg_kernel(const T* input, const long long* input_strides, T* y, const long long* shape,
                           long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T x = input[place(i, shape, input_strides, rank)];
    y[i] = -x;
}

void launch(const T* input, const long long* input_strides, T* y, const long long* shape, long long rank,
            long long count) {
    neg_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
