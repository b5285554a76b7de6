// log_softmax: x - log(sum(exp(x))) of every row, the largest term subtracted first.
#include "plain.cuh"

__global__ void log_softmax_kernel(const float* input, const long long* input_strides, float* y,
                                   const long long* y_strides, const long long* shape, long long rank,
                                   long long kept, long long rows, long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    float* out = y + place(row, shape, y_strides, kept);
    shape += kept;
    input_strides += kept;
    y_strides += kept;
    rank -= kept;
    float top = -INFINITY;
    for (long long k = 0; k < terms; ++k) top = larger(top, x[place(k, shape, input_strides, rank)]);
    float sum = 0.0f;
    for (long long k = 0; k < terms; ++k) sum += expf(x[place(k, shape, input_strides, rank)] - top);
    float shift = logf(sum);
    for (long long k = 0; k < terms; ++k) {
        out[place(k, shape, y_strides, rank)] = (x[place(k, shape, input_strides, rank)] - top) - shift;
    }
}

void launch(const float* input, const long long* input_strides, float* y, const long long* y_strides,
            const long long* shape, long long rank, long long kept, long long rows, long long terms) {
    log_softmax_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, y_strides, shape, rank, kept,
                                                  rows, terms);
}
