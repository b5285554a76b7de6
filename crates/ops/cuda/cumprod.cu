// cumprod: products of the terms of every row up to each.
#include "plain.cuh"

__global__ void cumprod_kernel(const T* input, const long long* input_strides, T* y,
                               const long long* y_strides, const long long* shape, long long rank,
                               long long kept, long long rows, long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const T* x = input + place(row, shape, input_strides, kept);
    T* out = y + place(row, shape, y_strides, kept);
    shape += kept;
    input_strides += kept;
    y_strides += kept;
    rank -= kept;
    T product = 1;
    for (long long k = 0; k < terms; ++k) {
        product *= x[place(k, shape, input_strides, rank)];
        out[place(k, shape, y_strides, rank)] = product;
    }
}

void launch(const T* input, const long long* input_strides, T* y, const long long* y_strides,
            const long long* shape, long long rank, long long kept, long long rows, long long terms) {
    cumprod_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, y_strides, shape, rank, kept, rows,
                                              terms);
}
