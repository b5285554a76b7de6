// logsumexp: log(sum(exp(x))) of every row, the largest term (where finite) subtracted first.
#include "plain.cuh"

__global__ void logsumexp_kernel(const float* input, const long long* input_strides, float* y,
                                 const long long* shape, long long rank, long long kept, long long rows,
                                 long long terms) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    float top = -INFINITY;
    for (long long k = 0; k < terms; ++k) top = larger(top, x[place(k, shape, input_strides, rank)]);
    if (fabsf(top) == INFINITY) top = 0.0f;
    float sum = 0.0f;
    for (long long k = 0; k < terms; ++k) sum += expf(x[place(k, shape, input_strides, rank)] - top);
    y[row] = logf(sum) + top;
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long kept, long long rows, long long terms) {
    logsumexp_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms);
}
