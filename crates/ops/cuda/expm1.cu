// expm1: exp(x) - 1.
#include "plain.cuh"

__global__ void expm1_kernel(const float* input, const long long* input_strides, float* y,
                             const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = expm1f(x);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    expm1_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
