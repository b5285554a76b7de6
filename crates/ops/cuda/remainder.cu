// remainder: with the sign of the divisor, broadcast.
#include "plain.cuh"

__device__ float rest(float a, float b) {
    float r = fmodf(a, b);
    return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}

__device__ long long rest(long long a, long long b) {
    long long r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

__global__ void remainder_kernel(const T* input, const long long* input_strides, const T* other,
                                 const long long* other_strides, T* y, const long long* shape,
                                 long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T a = input[place(i, shape, input_strides, rank)];
    T b = other[place(i, shape, other_strides, rank)];
    y[i] = rest(a, b);
}

void launch(const T* input, const long long* input_strides, const T* other, const long long* other_strides,
            T* y, const long long* shape, long long rank, long long count) {
    remainder_kernel<<<blocks(count), THREADS>>>(input, input_strides, other, other_strides, y, shape, rank,
                                                 count);
}
