// relu6: min(max(x, 0), 6).
#include "plain.cuh"

__global__ void relu6_kernel(const float* input, const long long* input_strides, float* y,
                             const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = smaller(larger(x, 0.0f), 6.0f);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    relu6_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
