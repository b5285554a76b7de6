// transpose, permute, expand, reshape, view, flatten, squeeze, unsqueeze, flip, narrow, select, and one
// tensor of cat or stack: the elements of a view of the input, to their places in a contiguous result.
#include "plain.cuh"

__global__ void copy_kernel(const T* input, const long long* input_strides, T* y,
                            const long long* y_strides, long long y_offset, const long long* shape,
                            long long rank, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    y[y_offset + place(i, shape, y_strides, rank)] = input[place(i, shape, input_strides, rank)];
}

void launch(const T* input, const long long* input_strides, T* y, const long long* y_strides,
            long long y_offset, const long long* shape, long long rank, long long count) {
    copy_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, y_strides, y_offset, shape, rank,
                                            count);
}
