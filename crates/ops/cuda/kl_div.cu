// kl_div: target * (log(target) - input), or exp(target) * (target - input) where the target holds
// logarithms; reduction 0 averages, 1 divides the sum by the batch, 2 sums, 3 has one pair in every row.
#include "plain.cuh"

__global__ void kl_div_kernel(const float* input, const long long* input_strides, const float* target,
                              const long long* target_strides, float* y, const long long* shape,
                              long long rank, long long kept, long long rows, long long terms,
                              long long reduction, bool log_target, long long batch) {
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
        sum += log_target ? expf(b) * (b - a) : (b == 0.0f ? 0.0f : b * logf(b)) - b * a;
    }
    y[row] = reduction == 0 ? sum / terms : reduction == 1 ? sum / batch : sum;
}

void launch(const float* input, const long long* input_strides, const float* target,
            const long long* target_strides, float* y, const long long* shape, long long rank,
            long long kept, long long rows, long long terms, long long reduction, bool log_target,
            long long batch) {
    kl_div_kernel<<<blocks(rows), THREADS>>>(input, input_strides, target, target_strides, y, shape, rank,
                                             kept, rows, terms, reduction, log_target, batch);
}
