// Transposed 2D convolution with a 3x3 window, stride 5, padding 1, dilation 2:
// x[B, CI, H, W], weight[CI, CO, 3, 3], y[B, CO, 5 H - 2, 5 W - 2].
//
// Input i reaches output 5 i - 1 + 2 k. The taps' reach, 4, is less than the stride, so no
// two pairs of input and tap meet: a thread per pair scatters its sum with a plain store.
// Outputs that nothing reaches are cleared first.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int STRIDE = 5;
static constexpr int PAD = 1;
static constexpr int DILATION = 2;
static constexpr int THREADS = 128;
static constexpr int CO_TILE = 4;

__global__ void clear(float* __restrict__ y, long long n) {
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    for (long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < n;
         i += stride) {
        y[i] = 0.0f;
    }
}

__global__ void scatter_pairs(const float* __restrict__ x, const float* __restrict__ weight,
                              float* __restrict__ y, int CI, int CO, int H, int W, int HO,
                              int WO) {
    const int plane = H * W;
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    const int tap = blockIdx.y % TAPS;
    const int co0 = blockIdx.y / TAPS * CO_TILE;
    if (pixel >= plane) {
        return;
    }
    const int ho = pixel / W * STRIDE - PAD + tap / K * DILATION;
    const int wo = pixel % W * STRIDE - PAD + tap % K * DILATION;
    // The padding cuts off what falls outside.
    if (ho < 0 || ho >= HO || wo < 0 || wo >= WO) {
        return;
    }

    const int channels = min(CO_TILE, CO - co0);
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * plane + pixel;
    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float v = image[static_cast<long long>(ci) * plane];
        const float* taps = weight + (ci * CO + co0) * TAPS + tap;
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            if (o < channels) {
                acc[o] += v * taps[o * TAPS];
            }
        }
    }
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        if (o < channels) {
            const long long out = static_cast<long long>(blockIdx.z) * CO + co0 + o;
            y[(out * HO + ho) * WO + wo] = acc[o];
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const long long outputs = static_cast<long long>(B) * CO * HO * WO;
    const int blocks = min((outputs + THREADS - 1) / THREADS, 128LL);
    clear<<<blocks, THREADS>>>(y, outputs);
    dim3 grid((H * W + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE * TAPS, B);
    scatter_pairs<<<grid, THREADS>>>(x, weight, y, CI, CO, H, W, HO, WO);
}
