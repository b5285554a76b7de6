// sum: over the terms of every row.
#include "plain.cuh"

__global__ void sum_kernel(const T* input, const long long* input_strides, T* y, const long long* shape,
                           long long rank, long long kept, long long rows, long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const T* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    T sum = 0;
    for (long long k = 0; k < terms; ++k) sum += x[place(k, shape, input_strides, rank)];
    y[row] = sum;
}

void launch(const T* input, const long long* input_strides, T* y, const long long* shape, long long rank,
            long long kept, long long rows, long long terms) {
    sum_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms);
}
