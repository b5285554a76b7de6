// selu: scale * x above 0, scale * alpha * (exp(x) - 1) otherwise (Klambauer et al. 2017).
#include "plain.cuh"

__global__ void selu_kernel(const float* input, const long long* input_strides, float* y,
                            const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    const float scale = 1.0507009873554805f, alpha = 1.6732632423543772f;
    y[i] = x > 0.0f || x != x ? scale * x : scale * alpha * expm1f(x);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count) {
    selu_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count);
}
