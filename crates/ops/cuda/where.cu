// where: input where the condition holds, other elsewhere, broadcast.
#include "plain.cuh"

__global__ void where_kernel(const bool* condition, const long long* condition_strides, const T* input,
                             const long long* input_strides, const T* other, const long long* other_strides,
                             T* y, const long long* shape, long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    y[i] = condition[place(i, shape, condition_strides, rank)] ? input[place(i, shape, input_strides, rank)]
                                                               : other[place(i, shape, other_strides, rank)];
}

void launch(const bool* condition, const long long* condition_strides, const T* input,
            const long long* input_strides, const T* other, const long long* other_strides, T* y,
            const long long* shape, long long rank, long long count) {
    where_kernel<<<blocks(count), THREADS>>>(condition, condition_strides, input, input_strides, other,
                                             other_strides, y, shape, rank, count);
}
