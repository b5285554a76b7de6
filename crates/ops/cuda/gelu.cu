// gelu: x * (1 + erf(x / sqrt(2))) / 2; approximate = 1 is the form with tanh.
#include "plain.cuh"

__global__ void gelu_kernel(const float* input, const long long* input_strides, float* y,
                            const long long* shape, long long rank, long long count,
                            long long approximate) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    float inner = approximate == 1 ? tanhf(0.7978845608028654f * (x + 0.044715f * (x * x * x)))
                                   : erff(x * 0.7071067811865476f);
    y[i] = 0.5f * x * (1.0f + inner);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count, long long approximate) {
    gelu_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count, approximate);
}
