// problem = "1/19"
// verdict = "correct"
// exit = 0
// passes_there = true
// A file with everything around the kernel that a host compiler would see.
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#define CHECK_CUDA(call)                                                          \
    do {                                                                          \
        cudaError_t status = (call);                                              \
        if (status != cudaSuccess) {                                              \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
            std::exit(EXIT_FAILURE);                                              \
        }                                                                         \
    } while (0)

constexpr int kThreads = 256;
using std::vector;

template <typename T>
__device__ __forceinline__ T relu_op(T v) {
    return v > T(0) ? v : T(0);
}

template <typename T, int kBlock>
__global__ void __launch_bounds__(kBlock) relu_kernel(const T* __restrict__ in, T* __restrict__ out, size_t n) {
    for (size_t i = blockIdx.x * size_t(kBlock) + threadIdx.x; i < n; i += size_t(gridDim.x) * kBlock) {
        out[i] = relu_op(in[i]);
    }
}

static inline int ceil_div(long long a, int b) { return (int)((a + b - 1) / b); }

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu_kernel<float, kThreads><<<std::min(ceil_div(n, kThreads), 1024), kThreads>>>(x, y, n);
    cudaGetLastError();
}

static void fill(vector<float>& v) {
    for (auto& f : v) f = rand() / (float)RAND_MAX - 0.5f;
}

int main(int argc, char** argv) {
    const int B = 16, D = 1000;
    vector<float> host(B * D);
    fill(host);
    float *x = nullptr, *y = nullptr;
    CHECK_CUDA(cudaMalloc(&x, host.size() * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&y, host.size() * sizeof(float)));
    CHECK_CUDA(cudaMemcpy(x, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    launch(x, y, B, D);
    CHECK_CUDA(cudaDeviceSynchronize());
    std::cout << "done\n";
    return 0;
}
