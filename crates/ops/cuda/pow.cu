// pow: input to the power of exponent, broadcast.
#include "plain.cuh"

__device__ float power(float x, float e) {
    if (e == 2.0f) return x * x;
    if (e == 3.0f) return x * x * x;
    if (e == 0.5f) return sqrtf(x);
    if (e == -0.5f) return 1.0f / sqrtf(x);
    if (e == -1.0f) return 1.0f / x;
    if (e == -2.0f) return 1.0f / (x * x);
    return powf(x, e);
}

// Negative powers of integers are no integers and do not come here.
__device__ long long power(long long x, long long e) {
    long long product = 1;
    for (; e > 0; --e) product *= x;
    return product;
}

__global__ void pow_kernel(const T* input, const long long* input_strides, const T* exponent,
                           const long long* exponent_strides, T* y, const long long* shape, long long rank,
                           long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T a = input[place(i, shape, input_strides, rank)];
    T b = exponent[place(i, shape, exponent_strides, rank)];
    y[i] = power(a, b);
}

void launch(const T* input, const long long* input_strides, const T* exponent,
            const long long* exponent_strides, T* y, const long long* shape, long long rank,
            long long count) {
    pow_kernel<<<blocks(count), THREADS>>>(input, input_strides, exponent, exponent_strides, y, shape, rank,
                                           count);
}
