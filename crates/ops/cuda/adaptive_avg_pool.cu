// adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d: the mean over windows that cut every
// spatial dimension into as many parts as the result has. Five dimensions: sample, channel, depth, height,
// width.
#include "plain.cuh"

__global__ void adaptive_avg_pool_kernel(const float* input, const long long* input_shape,
                                         const long long* input_strides, float* y, const long long* y_shape,
                                         long long count) {
    long long i = thread_number();
    if (i >= count) return;
    long long column = i % y_shape[4], row = i / y_shape[4] % y_shape[3];
    long long slice = i / y_shape[4] / y_shape[3] % y_shape[2];
    long long plane = i / y_shape[4] / y_shape[3] / y_shape[2];
    long long channel = plane % y_shape[1], sample = plane / y_shape[1];

    const float* x = input + sample * input_strides[0] + channel * input_strides[1];
    long long at[3] = {slice, row, column}, from[3], to[3];
    long long inside = 1;
    for (int k = 0; k < 3; ++k) {
        long long size = input_shape[2 + k], parts = y_shape[2 + k];
        from[k] = at[k] * size / parts;
        to[k] = ((at[k] + 1) * size + parts - 1) / parts;
        inside *= to[k] - from[k];
    }
    float sum = 0.0f;
    for (long long d = from[0]; d < to[0]; ++d) {
        for (long long h = from[1]; h < to[1]; ++h) {
            for (long long w = from[2]; w < to[2]; ++w) {
                sum += x[d * input_strides[2] + h * input_strides[3] + w * input_strides[4]];
            }
        }
    }
    y[i] = sum / inside;
}

void launch(const float* input, const long long* input_shape, const long long* input_strides, float* y,
            const long long* y_shape, long long count) {
    adaptive_avg_pool_kernel<<<blocks(count), THREADS>>>(input, input_shape, input_strides, y, y_shape,
                                                         count);
}
