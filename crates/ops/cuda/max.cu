// max: the largest term of every row, and its position where that is asked for.
#include "plain.cuh"

__global__ void max_kernel(const T* input, const long long* input_strides, T* y, long long* y_index,
                           const long long* shape, long long rank, long long kept, long long rows,
                           long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const T* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    T best = x[0];
    long long at = 0;
    for (long long k = 1; k < terms; ++k) {
        T v = x[place(k, shape, input_strides, rank)];
        // The first of equal terms, and the first NaN.
        if (v > best || (v != v && best == best)) {
            best = v;
            at = k;
        }
    }
    y[row] = best;
    if (y_index) y_index[row] = at;
}

void launch(const T* input, const long long* input_strides, T* y, long long* y_index,
            const long long* shape, long long rank, long long kept, long long rows, long long terms) {
    max_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, y_index, shape, rank, kept, rows, terms);
}
