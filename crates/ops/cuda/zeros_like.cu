// zeros_like: 0 everywhere.
#include "plain.cuh"

__global__ void zeros_like_kernel(T* y, long long count) {
    long long i = thread_number();
    if (i < count) y[i] = 0;
}

void launch(T* y, long long count) {
    zeros_like_kernel<<<blocks(count), THREADS>>>(y, count);
}
