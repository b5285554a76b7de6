// Transposed 3D convolution, stride 1, no padding: x[B, CI, D, H, W],
// weight[CI, CO, 3, 5, 7], y[B, CO, D + 2, H + 4, W + 6].
//
// Gather form, one thread per output position and two output channels. The taps that
// reach an output form a box, so each thread clips its three tap loops once and the
// inner loop has no guard at all.

static constexpr int KD = 3;
static constexpr int KH = 5;
static constexpr int KW = 7;
static constexpr int TAPS = KD * KH * KW;
static constexpr int THREADS = 128;
static constexpr int CO_TILE = 2;

__global__ void conv_transpose3d_clipped(const float* __restrict__ x,
                                         const float* __restrict__ weight,
                                         float* __restrict__ y, int CI, int CO, int D, int H,
                                         int W, int DO, int HO, int WO) {
    __shared__ float taps[TAPS][CO_TILE];

    const int volume = D * H * W;
    const int positions = DO * HO * WO;
    const int position = blockIdx.x * THREADS + threadIdx.x;
    const int co0 = blockIdx.y * CO_TILE;
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;

    // Input d meets output dz through tap kd = dz - d, and 0 <= d < D bounds kd.
    const int kd_first = max(0, dz - D + 1);
    const int kd_last = min(KD - 1, dz);
    const int kh_first = max(0, ho - H + 1);
    const int kh_last = min(KH - 1, ho);
    const int kw_first = max(0, wo - W + 1);
    const int kw_last = min(KW - 1, wo);

    float acc[CO_TILE] = {0.0f, 0.0f};

    for (int ci = 0; ci < CI; ++ci) {
        for (int i = threadIdx.x; i < TAPS * CO_TILE; i += THREADS) {
            const int o = i / TAPS;
            const int tap = i % TAPS;
            taps[tap][o] = co0 + o < CO ? weight[(ci * CO + co0 + o) * TAPS + tap] : 0.0f;
        }
        __syncthreads();

        if (position < positions) {
            const float* channel = image + static_cast<long long>(ci) * volume;
            for (int kd = kd_first; kd <= kd_last; ++kd) {
                for (int kh = kh_first; kh <= kh_last; ++kh) {
                    const float* row = channel + ((dz - kd) * H + ho - kh) * W + wo;
                    const int tap_row = (kd * KH + kh) * KW;
                    for (int kw = kw_first; kw <= kw_last; ++kw) {
                        const float v = row[-kw];
                        #pragma unroll
                        for (int o = 0; o < CO_TILE; ++o) {
                            acc[o] += v * taps[tap_row + kw][o];
                        }
                    }
                }
            }
        }
        __syncthreads();
    }

    if (position < positions) {
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            if (co0 + o < CO) {
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
                y[plane * positions + position] = acc[o];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    const int positions = DO * HO * WO;
    dim3 grid((positions + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_transpose3d_clipped<<<grid, THREADS>>>(x, weight, y, CI, CO, D, H, W, DO, HO, WO);
}
