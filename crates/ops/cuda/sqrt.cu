// sqrt: the square root.
#include "plain.cuh"

__global__ void sqrt_kernel(const float* input, const long long* input_strides, float* y,
                            const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = sqrtf(x);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    sqrt_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
