// problem = "1/19"
// verdict = "unsupported"
// exit = 4
// reason = "relu_vector_in_launch.cu:11:"
#include <vector>
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
void launch(const float* x, float* y, int B, int D) {
    std::vector<long long> sizes;
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, y, n);
}
