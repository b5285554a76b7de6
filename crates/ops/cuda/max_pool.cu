// max_pool1d, max_pool2d, max_pool3d: the maximum over windows; padding counts as minus infinity. Five
// dimensions: sample, channel, depth, height, width.
#include "plain.cuh"

__global__ void max_pool_kernel(const float* input, const long long* input_shape,
                                const long long* input_strides, float* y, const long long* y_shape,
                                const long long* kernel_size, const long long* stride,
                                const long long* padding, const long long* dilation, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    long long column = i % y_shape[4], row = i / y_shape[4] % y_shape[3];
    long long slice = i / y_shape[4] / y_shape[3] % y_shape[2];
    long long plane = i / y_shape[4] / y_shape[3] / y_shape[2];
    long long channel = plane % y_shape[1], sample = plane / y_shape[1];

    const float* x = input + sample * input_strides[0] + channel * input_strides[1];
    float top = -INFINITY;
    for (long long a = 0; a < kernel_size[0]; ++a) {
        long long d = slice * stride[0] - padding[0] + a * dilation[0];
        if (d < 0 || d >= input_shape[2]) continue;
        for (long long b = 0; b < kernel_size[1]; ++b) {
            long long h = row * stride[1] - padding[1] + b * dilation[1];
            if (h < 0 || h >= input_shape[3]) continue;
            for (long long e = 0; e < kernel_size[2]; ++e) {
                long long w = column * stride[2] - padding[2] + e * dilation[2];
                if (w < 0 || w >= input_shape[4]) continue;
                top = larger(top, x[d * input_strides[2] + h * input_strides[3] + w * input_strides[4]]);
            }
        }
    }
    y[i] = top;
}

void launch(const float* input, const long long* input_shape, const long long* input_strides, float* y,
            const long long* y_shape, const long long* kernel_size, const long long* stride,
            const long long* padding, const long long* dilation, long long count) {
    max_pool_kernel<<<blocks(count), THREADS>>>(input, input_shape, input_strides, y, y_shape, kernel_size,
                                                stride, padding, dilation, count);
}
