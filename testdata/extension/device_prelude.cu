#include <limits>
#include <cmath>
#include <algorithm>
__global__ void limits_kernel(const float* x, float* y, int n) {
    float best = -std::numeric_limits<float>::infinity();
    for (int i = 0; i < n; i++) best = std::max(best, x[i]);
    y[0] = best == INFINITY ? FLT_MAX : best;
    y[1] = std::exp(0.0f) + (float)M_PI * 0.0f + pow(x[0], 2.0);
}
torch::Tensor limits(torch::Tensor x) {
    auto y = torch::full({2}, -std::numeric_limits<float>::infinity(), x.options());
    limits_kernel<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
