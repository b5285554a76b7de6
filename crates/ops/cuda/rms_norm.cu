// rms_norm: every row over the root of its mean square, times the weight. Without eps, that of float32.
#include "plain.cuh"

__global__ void rms_norm_kernel(const float* input, const long long* input_strides, float* y,
                                const long long* y_strides, const float* weight,
                                const long long* weight_strides, const long long* shape, long long rank,
                                long long kept, long long rows, long long terms, bool has_eps, float eps) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    float* out = y + place(row, shape, y_strides, kept);
    shape += kept;
    input_strides += kept;
    y_strides += kept;
    rank -= kept;
    weight_strides += weight ? kept : 0;
    float squares = 0.0f;
    for (long long k = 0; k < terms; ++k) {
        float v = x[place(k, shape, input_strides, rank)];
        squares += v * v;
    }
    float scale = 1.0f / sqrtf(squares / terms + (has_eps ? eps : FLT_EPSILON));
    for (long long k = 0; k < terms; ++k) {
        float v = x[place(k, shape, input_strides, rank)] * scale;
        if (weight) v *= weight[place(k, shape, weight_strides, rank)];
        out[place(k, shape, y_strides, rank)] = v;
    }
}

void launch(const float* input, const long long* input_strides, float* y, const long long* y_strides,
            const float* weight, const long long* weight_strides, const long long* shape, long long rank,
            long long kept, long long rows, long long terms, bool has_eps, float eps) {
    rms_norm_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, y_strides, weight, weight_strides,
                                               shape, rank, kept, rows, terms, has_eps, eps);
}
