// softplus: log(1 + exp(beta * x)) / beta, x itself where beta * x is above the threshold.
#include "plain.cuh"

__global__ void softplus_kernel(const float* input, const long long* input_strides, float* y,
                                const long long* shape, long long rank, long long count, float beta,
                                float threshold) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = x * beta > threshold ? x : log1pf(expf(x * beta)) / beta;
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count, float beta, float threshold) {
    softplus_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count, beta,
                                                threshold);
}
