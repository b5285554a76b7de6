// amax: the largest term of every row, NaN where one is NaN.
#include "plain.cuh"

__global__ void amax_kernel(const T* input, const long long* input_strides, T* y, const long long* shape,
                            long long rank, long long kept, long long rows, long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const T* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    T best = x[0];
    for (long long k = 1; k < terms; ++k) best = larger(best, x[place(k, shape, input_strides, rank)]);
    y[row] = best;
}

void launch(const T* input, const long long* input_strides, T* y, const long long* shape, long long rank,
            long long kept, long long rows, long long terms) {
    amax_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms);
}
