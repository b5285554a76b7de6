// argmax: the position of the largest term of every row.
#include "plain.cuh"

__global__ void argmax_kernel(const T* input, const long long* input_strides, long long* y,
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
    y[row] = at;
}

void launch(const T* input, const long long* input_strides, long long* y, const long long* shape,
            long long rank, long long kept, long long rows, long long terms) {
    argmax_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms);
}
