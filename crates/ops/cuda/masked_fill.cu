// masked_fill: value where the mask holds, input elsewhere, broadcast.
#include "plain.cuh"

__global__ void masked_fill_kernel(const T* input, const long long* input_strides, const bool* mask,
                                   const long long* mask_strides, T* y, const long long* shape,
                                   long long rank, long long count, T value) {
    long long i = thread_number();
    if (i >= count) return;
    y[i] = mask[place(i, shape, mask_strides, rank)] ? value : input[place(i, shape, input_strides, rank)];
}

void launch(const T* input, const long long* input_strides, const bool* mask, const long long* mask_strides,
            T* y, const long long* shape, long long rank, long long count, T value) {
    masked_fill_kernel<<<blocks(count), THREADS>>>(input, input_strides, mask, mask_strides, y, shape, rank,
                                                   count, value);
}
