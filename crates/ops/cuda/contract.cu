// matmul, mm, mv, bmm, linear, einsum: sums of products of left and right over the dimensions that are not
// kept, plus bias. Without right, sums of left.
#include "plain.cuh"

__global__ void contract_kernel(const float* left, const long long* left_strides, const float* right,
                                const long long* right_strides, const float* bias,
                                const long long* bias_strides, float* y, const long long* shape,
                                long long rank, long long kept, long long rows, long long terms,
                                long long inner) {
    long long row = thread_number();
    if (row >= rows) return;
    left += place(row, shape, left_strides, kept);
    if (right) right += place(row, shape, right_strides, kept);
    // The last summed dimension has a loop of its own, so that its indices need no division.
    long long outer = rank > kept ? rank - kept - 1 : 0;
    long long left_step = rank > kept ? left_strides[rank - 1] : 0;
    long long right_step = rank > kept && right ? right_strides[rank - 1] : 0;
    float sum = 0.0f;
    for (long long k = 0; k < terms; k += inner) {
        const float* a = left + place(k / inner, shape + kept, left_strides + kept, outer);
        if (right) {
            const float* b = right + place(k / inner, shape + kept, right_strides + kept, outer);
            for (long long j = 0; j < inner; ++j) sum += a[j * left_step] * b[j * right_step];
        } else {
            for (long long j = 0; j < inner; ++j) sum += a[j * left_step];
        }
    }
    if (bias) sum += bias[place(row, shape, bias_strides, kept)];
    y[row] = sum;
}

void launch(const float* left, const long long* left_strides, const float* right,
            const long long* right_strides, const float* bias, const long long* bias_strides, float* y,
            const long long* shape, long long rank, long long kept, long long rows, long long terms,
            long long inner) {
    contract_kernel<<<blocks(rows), THREADS>>>(left, left_strides, right, right_strides, bias, bias_strides,
                                               y, shape, rank, kept, rows, terms, inner);
}
