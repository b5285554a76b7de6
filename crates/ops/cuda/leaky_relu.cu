// leaky_relu: x above 0, negative_slope * x otherwise.
#include "plain.cuh"

__global__ void leaky_relu_kernel(const float* input, const long long* input_strides, float* y,
                                  const long long* shape, long long rank, long long count,
                                  float negative_slope) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = x > 0.0f ? x : x * negative_slope;
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count, float negative_slope) {
    leaky_relu_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count,
                                                  negative_slope);
}
