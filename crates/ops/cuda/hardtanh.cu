// hardtanh: min(max(x, min_val), max_val).
#include "plain.cuh"

__global__ void hardtanh_kernel(const float* input, const long long* input_strides, float* y,
                                const long long* shape, long long rank, long long count, float min_val,
                                float max_val) {
    long long i = thread_number();
    if (i >= count) return;
    float x = input[place(i, shape, input_strides, rank)];
    y[i] = smaller(larger(x, min_val), max_val);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long count, float min_val, float max_val) {
    hardtanh_kernel<<<blocks(count), THREADS>>>(input, input_strides, y, shape, rank, count, min_val,
                                                max_val);
}
