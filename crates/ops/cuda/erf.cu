// erf: the error function.
#include "plain.cuh"

__global__ void erf_kernel(const float* input, const long long* input_strides, float* y,
                           const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = erff(x);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    erf_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
