// cross_entropy: the weighted negative log-softmax at the target's class, or averaged over its
// probabilities; reduction 0 averages (over the weights of the classes), 1 sums, 2 is one loss per
// position.
#include "plain.cuh"

__global__ void position_kernel(const float* input, const long long* input_strides, const float* target,
                                const long long* target_i64, const long long* target_strides,
                                const float* weight, long long weight_stride, float* losses, float* weights,
                                const long long* shape, long long rank, long long kept, long long rows,
                                long long terms, long long ignore_index, float label_smoothing) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    long long at = place(row, shape, target_strides, kept);
    const long long* classes = shape + kept;
    input_strides += kept;
    target_strides += kept;
    rank -= kept;
    float top = -INFINITY;
    for (long long c = 0; c < terms; ++c) top = larger(top, x[place(c, classes, input_strides, rank)]);
    float sum = 0.0f;
    for (long long c = 0; c < terms; ++c) sum += expf(x[place(c, classes, input_strides, rank)] - top);
    float shift = logf(sum);
    float share = label_smoothing / terms;
    float loss = 0.0f, counted = 1.0f;
    if (target_i64) {
        long long own = target_i64[at];
        if (own == ignore_index) {
            losses[row] = 0.0f;
            weights[row] = 0.0f;
            return;
        }
        counted = weight ? weight[own * weight_stride] : 1.0f;
        loss = -(x[place(own, classes, input_strides, rank)] - top - shift) * counted;
        if (label_smoothing > 0.0f) {
            float all = 0.0f;
            for (long long c = 0; c < terms; ++c) {
                float v = x[place(c, classes, input_strides, rank)] - top - shift;
                all -= v * (weight ? weight[c * weight_stride] : 1.0f);
            }
            loss = (1.0f - label_smoothing) * loss + share * all;
        }
    } else {
        for (long long c = 0; c < terms; ++c) {
            float v = x[place(c, classes, input_strides, rank)] - top - shift;
            float p = target[at + place(c, classes, target_strides, rank)] * (1.0f - label_smoothing) + share;
            loss -= v * p * (weight ? weight[c * weight_stride] : 1.0f);
        }
    }
    losses[row] = loss;
    weights[row] = counted;
}

__global__ void total_kernel(const float* losses, const float* weights, float* y, long long rows,
                             bool average) {
    float sum = 0.0f, counted = 0.0f;
    for (long long row = 0; row < rows; ++row) {
        sum += losses[row];
        counted += weights[row];
    }
    y[0] = average ? sum / counted : sum;
}

void launch(const float* input, const long long* input_strides, const float* target,
            const long long* target_i64, const long long* target_strides, const float* weight,
            long long weight_stride, float* y, const long long* shape, long long rank, long long kept,
            long long rows, long long terms, long long ignore_index, float label_smoothing,
            long long reduction) {
    float* part = scratch<float>(rows);
    float* weights = scratch<float>(rows);
    float* losses = reduction == 2 ? y : part;
    position_kernel<<<blocks(rows), THREADS>>>(input, input_strides, target, target_i64, target_strides,
                                               weight, weight_stride, losses, weights, shape, rank, kept,
                                               rows, terms, ignore_index, label_smoothing);
    if (reduction != 2) {
        total_kernel<<<1, 1>>>(losses, weights, y, rows, reduction == 0);
    }
}
