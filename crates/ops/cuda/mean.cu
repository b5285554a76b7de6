// mean: the sum of the terms of every row, divided by their number.
#include "plain.cuh"

__global__ void mean_kernel(const float* input, const long long* input_strides, float* y,
                            const long long* shape, long long rank, long long kept, long long rows,
                            long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    float sum = 0.0f;
    for (long long k = 0; k < terms; ++k) sum += x[place(k, shape, input_strides, rank)];
    y[row] = sum / terms;
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long kept, long long rows, long long terms) {
    mean_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms);
}
