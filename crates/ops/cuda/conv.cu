// conv1d, conv2d, conv3d: cross-correlation with zero padding, bias added last. Five dimensions: sample or
// output channel, channel, depth, height, width.
#include "plain.cuh"

__global__ void conv_kernel(const float* input, const long long* input_shape,
                            const long long* input_strides, const float* weight,
                            const long long* weight_shape, const long long* weight_strides,
                            const float* bias, long long bias_stride, float* y, const long long* y_shape,
                            const long long* stride, const long long* padding, const long long* dilation,
                            long long groups, long long count) {
    long long i = thread_number();
    if (i >= count) return;
    long long column = i % y_shape[4], row = i / y_shape[4] % y_shape[3];
    long long slice = i / y_shape[4] / y_shape[3] % y_shape[2];
    long long plane = i / y_shape[4] / y_shape[3] / y_shape[2];
    long long channel = plane % y_shape[1], sample = plane / y_shape[1];

    long long channels = weight_shape[1];
    long long group = channel / (weight_shape[0] / groups);
    const float* x = input + sample * input_strides[0] + group * channels * input_strides[1];
    const float* f = weight + channel * weight_strides[0];
    float sum = 0.0f;
    for (long long c = 0; c < channels; ++c) {
        for (long long a = 0; a < weight_shape[2]; ++a) {
            long long d = slice * stride[0] - padding[0] + a * dilation[0];
            if (d < 0 || d >= input_shape[2]) continue;
            for (long long b = 0; b < weight_shape[3]; ++b) {
                long long h = row * stride[1] - padding[1] + b * dilation[1];
                if (h < 0 || h >= input_shape[3]) continue;
                const float* line = x + c * input_strides[1] + d * input_strides[2] + h * input_strides[3];
                const float* taps = f + c * weight_strides[1] + a * weight_strides[2] + b * weight_strides[3];
                for (long long e = 0; e < weight_shape[4]; ++e) {
                    long long w = column * stride[2] - padding[2] + e * dilation[2];
                    if (w < 0 || w >= input_shape[4]) continue;
                    sum += line[w * input_strides[4]] * taps[e * weight_strides[4]];
                }
            }
        }
    }
    y[i] = bias ? sum + bias[channel * bias_stride] : sum;
}

void launch(const float* input, const long long* input_shape, const long long* input_strides,
            const float* weight, const long long* weight_shape, const long long* weight_strides,
            const float* bias, long long bias_stride, float* y, const long long* y_shape,
            const long long* stride, const long long* padding, const long long* dilation, long long groups,
            long long count) {
    conv_kernel<<<blocks(count), THREADS>>>(input, input_shape, input_strides, weight, weight_shape,
                                            weight_strides, bias, bias_stride, y, y_shape, stride, padding,
                                            dilation, groups, count);
}
