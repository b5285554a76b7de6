// elu: x above 0, alpha * (exp(x) - 1) otherwise.
#include "plain.cuh"

__global__ void elu_kernel(const float* input, const long long* input_strides, float* y,
                           const long long* shape, long long rank, long long count, float alpha) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = x > 0.0f || x != x ? x : alpha * expm1f(x);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count, float alpha) {
    elu_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count, alpha);
}
