// triu: elements on and above a diagonal of every matrix, zero elsewhere.
#include "plain.cuh"

__global__ void triu_kernel(const T* input, const long long* input_strides, T* y, const long long* shape,
                            long long rank, long long count, long long matrix_rows,
                            long long matrix_columns, long long diagonal) {
    long long i = thread_number();
    if (i >= count) return;
    long long column = i % matrix_columns, row = i / matrix_columns % matrix_rows;
    y[i] = column - row >= diagonal ? input[place(i, shape, input_strides, rank)] : (T)0;
}

void launch(const T* input, const long long* input_strides, T* y, const long long* shape, long long rank,
            long long count, long long matrix_rows, long long matrix_columns, long long diagonal) {
    triu_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count, matrix_rows,
                                            matrix_columns, diagonal);
}
