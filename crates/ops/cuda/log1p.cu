// log1p: log(1 + x).
#include "plain.cuh"

__global__ void log1p_kernel(const float* input, const long long* input_strides, float* y,
                             const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = log1pf(x);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    log1p_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
