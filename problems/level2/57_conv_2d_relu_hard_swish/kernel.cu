// y = hardswish(relu(conv3x3(x) + bias)), no padding.
//
// All filters fit into shared memory. Blocks stride over the positions of all images; a
// thread makes six output channels of its position at a time and goes over its window,
// which stays in the cache, once per six.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int MAX_BLOCKS = 3;
static constexpr int CO_STEP = 6;

__global__ void conv_hard_swish(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int CI,
                                int CO, int H, int W, int HO, int WO, int all_positions) {
    extern __shared__ float filters[];
    const int terms = CI * TAPS;
    for (int i = threadIdx.x; i < CO * terms; i += THREADS) {
        filters[i] = weight[i];
    }
    __syncthreads();

    const int pixels = HO * WO;
    for (int at = blockIdx.x * THREADS + threadIdx.x; at < all_positions;
         at += gridDim.x * THREADS) {
        const int n = at / pixels;
        const int p = at % pixels;
        const float* corner =
            x + (static_cast<long long>(n) * CI * H + p / WO) * W + p % WO;
        for (int co0 = 0; co0 < CO; co0 += CO_STEP) {
            const int last = CO - 1;
            float acc[CO_STEP] = {};
            for (int ci = 0; ci < CI; ++ci) {
                const float* in = corner + static_cast<long long>(ci) * H * W;
                #pragma unroll
                for (int tap = 0; tap < TAPS; ++tap) {
                    const float v = in[tap / K * W + tap % K];
                    #pragma unroll
                    for (int o = 0; o < CO_STEP; ++o) {
                        // Channels beyond the last repeat it and are not stored.
                        acc[o] += v * filters[min(co0 + o, last) * terms + ci * TAPS + tap];
                    }
                }
            }
            #pragma unroll
            for (int o = 0; o < CO_STEP; ++o) {
                if (co0 + o < CO) {
                    const float h = fmaxf(acc[o] + bias[co0 + o], 0.0f);
                    const float gate = fminf(fmaxf((h + 3.0f) / 6.0f, 0.0f), 1.0f);
                    const long long plane = static_cast<long long>(n) * CO + co0 + o;
                    y[plane * pixels + p] = h * gate;
                }
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int all_positions = B * HO * WO;
    const int blocks = min((all_positions + THREADS - 1) / THREADS, MAX_BLOCKS);
    const int shared = CO * CI * TAPS * sizeof(float);
    conv_hard_swish<<<blocks, THREADS, shared>>>(x, weight, bias, y, CI, CO, H, W, HO, WO,
                                                 all_positions);
}
