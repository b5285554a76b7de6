// var: squared differences from the mean of every row, over max(0, terms - correction).
#include "plain.cuh"

__global__ void var_kernel(const float* input, const long long* input_strides, float* y,
                           const long long* shape, long long rank, long long kept, long long rows,
                           long long terms, float correction) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    float mean = 0.0f;
    for (long long k = 0; k < terms; ++k) mean += x[place(k, shape, input_strides, rank)];
    mean /= terms;
    float squares = 0.0f;
    for (long long k = 0; k < terms; ++k) {
        float d = x[place(k, shape, input_strides, rank)] - mean;
        squares += d * d;
    }
    float count = fmaxf(0.0f, terms - correction);
    y[row] = squares / count;
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long kept, long long rows, long long terms, float correction) {
    var_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms,
                                          correction);
}
