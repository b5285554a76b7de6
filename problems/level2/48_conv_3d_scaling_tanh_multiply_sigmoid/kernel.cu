// y = sigmoid(tanh((conv3x3x3(x) + conv_bias) * scaling) * bias), no padding.
//
// Few input channels, many output channels: a thread loads the window of its position into
// registers, channel by channel, and adds its products to sixteen sums at once. More than
// sixteen output channels are left to further blocks.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 16;

__global__ void conv3d_window(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ conv_bias,
                              const float* __restrict__ scaling_factor,
                              const float* __restrict__ bias, float* __restrict__ y, int CI,
                              int CO, int D, int H, int W, int DO, int HO, int WO) {
    __shared__ float taps[CO_TILE][TAPS];
    const int co0 = blockIdx.y * CO_TILE;
    const int position = blockIdx.x * THREADS + threadIdx.x;
    const int positions = DO * HO * WO;
    const bool inside = position < positions;
    const int at = inside ? position : 0;
    const int wo = at % WO;
    const int ho = at / WO % HO;
    const int dz = at / (WO * HO);

    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        for (int i = threadIdx.x; i < CO_TILE * TAPS; i += THREADS) {
            const int co = co0 + i / TAPS;
            taps[i / TAPS][i % TAPS] = co < CO ? weight[(co * CI + ci) * TAPS + i % TAPS] : 0.0f;
        }
        const long long volume = static_cast<long long>(blockIdx.z) * CI + ci;
        const float* corner = x + ((volume * D + dz) * H + ho) * W + wo;
        float window[TAPS];
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            window[tap] = corner[(tap / (K * K) * H + tap / K % K) * W + tap % K];
        }
        __syncthreads();
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                acc[o] += window[tap] * taps[o][tap];
            }
        }
        __syncthreads();
    }

    if (inside) {
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            const int co = co0 + o;
            if (co < CO) {
                const float h = (acc[o] + conv_bias[co]) * scaling_factor[co];
                const float v = tanhf(h) * bias[co];
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
                y[plane * positions + position] = 1.0f / (1.0f + expf(-v));
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* conv_bias,
            const float* scaling_factor, const float* bias, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    dim3 grid((DO * HO * WO + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv3d_window<<<grid, THREADS>>>(x, weight, conv_bias, scaling_factor, bias, y, CI, CO,
                                     D, H, W, DO, HO, WO);
}
