// floor_divide: the quotient rounded down, broadcast.
#include "plain.cuh"

__device__ float quotient(float a, float b) {
    if (b == 0.0f) return a / b;
    float r = fmodf(a, b);
    float q = (a - r) / b;
    if (r != 0.0f && (r < 0.0f) != (b < 0.0f)) q -= 1.0f;
    if (q == 0.0f) return q;
    // The quotient is whole but for rounding.
    float down = floorf(q);
    return q - down > 0.5f ? down + 1.0f : down;
}

__device__ long long quotient(long long a, long long b) {
    long long q = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

__global__ void floor_divide_kernel(const T* input, const long long* input_strides, const T* other,
                                    const long long* other_strides, T* y, const long long* shape,
                                    long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    T a = input[place(i, shape, input_strides, rank)];
    T b = other[place(i, shape, other_strides, rank)];
    y[i] = quotient(a, b);
}

void launch(const T* input, const long long* input_strides, const T* other, const long long* other_strides,
            T* y, const long long* shape, long long rank, long long count) {
    floor_divide_kernel<<<blocks(count), THREADS>>>(input, input_strides, other, other_strides, y, shape,
                                                    rank, count);
}
