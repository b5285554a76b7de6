// ones_like: 1 everywhere.
#include "plain.cuh"

__global__ void ones_like_kernel(T* y, long long count) {
    long long i = thread_number();
    if (i < count) y[i] = 1;
}

void launch(T* y, long long count) {
    ones_like_kernel<<<blocks(count), THREADS>>>(y, count);
}
