// l1_loss: |input - target|; reduction 0 averages, 1 sums, 2 has one pair in every row.
#include "plain.cuh"

__global__ void l1_loss_kernel(const float* input, const long long* input_strides, const float* target,
                               const long long* target_strides, float* y, const long long* shape,
                               long long rank, long long kept, long long rows, long long terms,
                               long long reduction) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    target += place(row, shape, target_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    target_strides += kept;
    float sum = 0.0f;
    for (long long k = 0; k < terms; ++k) {
        float a = x[place(k, shape, input_strides, rank)];
        float b = target[place(k, shape, target_strides, rank)];
        sum += fabsf(a - b);
    }
    y[row] = reduction == 0 ? sum / terms : sum;
}

void launch(const float* input, const long long* input_strides, const float* target,
            const long long* target_strides, float* y, const long long* shape, long long rank,
            long long kept, long long rows, long long terms, long long reduction) {
    l1_loss_kernel<<<blocks(rows), THREADS>>>(input, input_strides, target, target_strides, y, shape, rank,
                                              kept, rows, terms, reduction);
}
