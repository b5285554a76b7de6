// y = max pool 4x4 of (tanh(conv3x3(x) + conv_bias) * scaling + bias).
//
// A thread makes one pooled output: 16 convolution results in registers. It walks the six rows of
// the patch below its pool; six values of a row meet up to three rows of results.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int POOL = 4;
static constexpr int PATCH = POOL + K - 1;
static constexpr int THREADS = 64;

__global__ void conv_tanh_max(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ conv_bias,
                              const float* __restrict__ bias, float* __restrict__ y, int CI,
                              int CO, int H, int W, int PH, int PW, float scaling_factor) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    const int co = blockIdx.y;
    if (pool >= PH * PW) {
        return;
    }
    const float* in = x + (static_cast<long long>(blockIdx.z) * CI * H + pool / PW * POOL) * W +
                      pool % PW * POOL;

    float acc[POOL][POOL] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* filter = weight + (co * CI + ci) * TAPS;
        #pragma unroll
        for (int i = 0; i < PATCH; ++i) {
            float row[PATCH];
            #pragma unroll
            for (int j = 0; j < PATCH; ++j) {
                row[j] = in[i * W + j];
            }
            #pragma unroll
            for (int kh = 0; kh < K; ++kh) {
                const int r = i - kh;
                if (r >= 0 && r < POOL) {
                    #pragma unroll
                    for (int kw = 0; kw < K; ++kw) {
                        const float tap = filter[kh * K + kw];
                        #pragma unroll
                        for (int c = 0; c < POOL; ++c) {
                            acc[r][c] += row[c + kw] * tap;
                        }
                    }
                }
            }
        }
        in += H * W;
    }

    float best = -INFINITY;
    #pragma unroll
    for (int r = 0; r < POOL; ++r) {
        #pragma unroll
        for (int c = 0; c < POOL; ++c) {
            // The scaling may be negative, so it comes before the maximum.
            best = fmaxf(best, tanhf(acc[r][c] + conv_bias[co]) * scaling_factor);
        }
    }
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    y[plane * (PH * PW) + pool] = best + bias[co];
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int PH, int PW,
            float scaling_factor) {
    dim3 grid((PH * PW + THREADS - 1) / THREADS, CO, B);
    conv_tanh_max<<<grid, THREADS>>>(x, weight, conv_bias, bias, y, CI, CO, H, W, PH, PW,
                                     scaling_factor);
}
