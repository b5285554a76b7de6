// layer_norm, group_norm, instance_norm, batch_norm: (x - mean) / sqrt(var + eps) * weight + bias of every
// row, by the row's own mean and biased variance or by running ones.
#include "plain.cuh"

__global__ void normalise_kernel(const float* input, const long long* input_strides, float* y,
                                 const long long* y_strides, const float* weight,
                                 const long long* weight_strides, const float* bias,
                                 const long long* bias_strides, const float* running_mean,
                                 const long long* running_mean_strides, const float* running_var,
                                 const long long* running_var_strides, const long long* shape,
                                 long long rank, long long kept, long long rows, long long terms, bool own,
                                 float eps) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    float* out = y + place(row, shape, y_strides, kept);
    if (weight) weight += place(row, shape, weight_strides, kept);
    if (bias) bias += place(row, shape, bias_strides, kept);
    float mean = 0.0f, var = 0.0f;
    if (!own) {
        mean = running_mean[place(row, shape, running_mean_strides, kept)];
        var = running_var[place(row, shape, running_var_strides, kept)];
    }
    shape += kept;
    input_strides += kept;
    y_strides += kept;
    rank -= kept;
    if (own) {
        for (long long k = 0; k < terms; ++k) mean += x[place(k, shape, input_strides, rank)];
        mean /= terms;
        for (long long k = 0; k < terms; ++k) {
            float d = x[place(k, shape, input_strides, rank)] - mean;
            var += d * d;
        }
        var /= terms;
    }
    float scale = 1.0f / sqrtf(var + eps);
    for (long long k = 0; k < terms; ++k) {
        float v = (x[place(k, shape, input_strides, rank)] - mean) * scale;
        if (weight) v *= weight[place(k, shape, weight_strides + kept, rank)];
        if (bias) v += bias[place(k, shape, bias_strides + kept, rank)];
        out[place(k, shape, y_strides, rank)] = v;
    }
}

void launch(const float* input, const long long* input_strides, float* y, const long long* y_strides,
            const float* weight, const long long* weight_strides, const float* bias,
            const long long* bias_strides, const float* running_mean, const long long* running_mean_strides,
            const float* running_var, const long long* running_var_strides, const long long* shape,
            long long rank, long long kept, long long rows, long long terms, bool own, float eps) {
    normalise_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, y_strides, weight, weight_strides,
                                                bias, bias_strides, running_mean, running_mean_strides,
                                                running_var, running_var_strides, shape, rank, kept, rows,
                                                terms, own, eps);
}
