// avg_pool1d, avg_pool2d, avg_pool3d: the mean over windows; with count_include_pad padding counts, but
// never what lies beyond it. Five dimensions: sample, channel, depth, height, width.
#include "plain.cuh"

__global__ void avg_pool_kernel(const float* input, const long long* input_shape,
                                const long long* input_strides, float* y, const long long* y_shape,
                                const long long* kernel_size, const long long* stride,
                                const long long* padding, bool count_include_pad, bool has_divisor_override,
                                long long divisor_override, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    long long column = i % y_shape[4], row = i / y_shape[4] % y_shape[3];
    long long slice = i / y_shape[4] / y_shape[3] % y_shape[2];
    long long plane = i / y_shape[4] / y_shape[3] / y_shape[2];
    long long channel = plane % y_shape[1], sample = plane / y_shape[1];

    const float* x = input + sample * input_strides[0] + channel * input_strides[1];
    long long at[3] = {slice, row, column}, from[3], to[3];
    long long padded = 1, inside = 1;
    for (int k = 0; k < 3; ++k) {
        long long size = input_shape[2 + k];
        long long start = at[k] * stride[k] - padding[k];
        long long end = min(start + kernel_size[k], size + padding[k]);
        padded *= end - start;
        from[k] = max(start, 0LL);
        to[k] = min(end, size);
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
    long long divisor = has_divisor_override ? divisor_override : count_include_pad ? padded : inside;
    y[i] = sum / divisor;
}

void launch(const float* input, const long long* input_shape, const long long* input_strides, float* y,
            const long long* y_shape, const long long* kernel_size, const long long* stride,
            const long long* padding, bool count_include_pad, bool has_divisor_override,
            long long divisor_override, long long count) {
    avg_pool_kernel<<<blocks(count), THREADS>>>(input, input_shape, input_strides, y, y_shape, kernel_size,
                                                stride, padding, count_include_pad, has_divisor_override,
                                                divisor_override, count);
}
