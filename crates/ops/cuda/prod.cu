// prod: the product of the terms of every row.
#include "plain.cuh"

__global__ void prod_kernel(const float* input, const long long* input_strides, float* y,
                            const long long* shape, long long rank, long long kept, long long rows,
                            long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    float product = 1.0f;
    for (long long k = 0; k < terms; ++k) product *= x[place(k, shape, input_strides, rank)];
    y[row] = product;
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long kept, long long rows, long long terms) {
    prod_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms);
}
