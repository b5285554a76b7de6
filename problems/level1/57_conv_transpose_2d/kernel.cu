// Transposed 2D convolution, stride 1, no padding: x[B, CI, H, W], weight[CI, CO, 3, 3],
// y[B, CO, H + 2, W + 2].
//
// Gather form: an output collects the inputs that reach it, so no atomics are needed.
// A block makes 8x8 outputs of four output channels; the weights of four input
// channels at a time sit in shared memory and serve the whole block.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int TILE = 8;
static constexpr int OUT_PER_THREAD = 4;
static constexpr int CI_STEP = 4;
static constexpr int STAGED = CI_STEP * TAPS * OUT_PER_THREAD;

__global__ void conv_transpose_gather(const float* __restrict__ x,
                                      const float* __restrict__ weight, float* __restrict__ y,
                                      int CI, int CO, int H, int W, int HO, int WO, int tiles_w) {
    // Output channels innermost: a thread reads its four weights of a tap side by side.
    __shared__ float taps[CI_STEP][TAPS][OUT_PER_THREAD];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int wo = (blockIdx.x % tiles_w) * TILE + tx;
    const int ho = (blockIdx.x / tiles_w) * TILE + ty;
    const int co0 = blockIdx.y * OUT_PER_THREAD;
    const bool inside = ho < HO && wo < WO;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;

    float acc[OUT_PER_THREAD] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        for (int i = tid; i < STAGED; i += TILE * TILE) {
            const int o = i % OUT_PER_THREAD;
            const int tap = (i / OUT_PER_THREAD) % TAPS;
            const int c = i / (OUT_PER_THREAD * TAPS);
            const bool exists = ci0 + c < CI && co0 + o < CO;
            taps[c][tap][o] = exists ? weight[((ci0 + c) * CO + co0 + o) * TAPS + tap] : 0.0f;
        }
        __syncthreads();

        if (inside) {
            const int channels = min(CI_STEP, CI - ci0);
            for (int c = 0; c < channels; ++c) {
                const float* plane = image + static_cast<long long>(ci0 + c) * H * W;
                #pragma unroll
                for (int kh = 0; kh < K; ++kh) {
                    const int h = ho - kh;
                    if (h < 0 || h >= H) {
                        continue;
                    }
                    #pragma unroll
                    for (int kw = 0; kw < K; ++kw) {
                        const int w = wo - kw;
                        const float v = (w >= 0 && w < W) ? plane[h * W + w] : 0.0f;
                        #pragma unroll
                        for (int o = 0; o < OUT_PER_THREAD; ++o) {
                            acc[o] += v * taps[c][kh * K + kw][o];
                        }
                    }
                }
            }
        }
        __syncthreads();
    }

    if (inside) {
        #pragma unroll
        for (int o = 0; o < OUT_PER_THREAD; ++o) {
            if (co0 + o < CO) {
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
                y[(plane * HO + ho) * WO + wo] = acc[o];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int tiles_w = (WO + TILE - 1) / TILE;
    const int tiles_h = (HO + TILE - 1) / TILE;
    dim3 block(TILE, TILE);
    dim3 grid(tiles_w * tiles_h, (CO + OUT_PER_THREAD - 1) / OUT_PER_THREAD, B);
    conv_transpose_gather<<<grid, block>>>(x, weight, y, CI, CO, H, W, HO, WO, tiles_w);
}
