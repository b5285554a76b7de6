// logsigmoid: log(1 / (1 + exp(-x))), without overflow.
#include "plain.cuh"

__global__ void logsigmoid_kernel(const float* input, const long long* input_strides, float* y,
                                  const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = smaller(x, 0.0f) - log1pf(expf(-fabsf(x)));
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    logsigmoid_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
