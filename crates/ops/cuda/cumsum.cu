// cumsum: sums of the terms of every row up to each.
#include "plain.cuh"

__global__ void cumsum_kernel(const T* input, const long long* input_strides, T* y,
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
    T sum = 0;
    for (long long k = 0; k < terms; ++k) {
        sum += x[place(k, shape, input_strides, rank)];
        out[place(k, shape, y_strides, rank)] = sum;
    }
}

void launch(const T* input, const long long* input_strides, T* y, const long long* y_strides,
            const long long* shape, long long rank, long long kept, long long rows, long long terms) {
    cumsum_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, y_strides, shape, rank, kept, rows,
                                             terms);
}
