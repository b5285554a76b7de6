// y = max(transposed conv3x3x3(x) + bias, min_value) / divisor, stride 2, padding 1.
//
// Outputs fall into eight classes by the parity of their place along each axis; an even place
// meets tap 1, an odd one taps 2 and 0 of two neighbours. Each class has an instance of the
// kernel of its own with its one to eight taps known at compile time; classes with an odd
// axis have one place fewer along it and may be empty.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 4;

template <int ODD_D, int ODD_H, int ODD_W>
__global__ void conv_transpose_class(const float* __restrict__ x,
                                     const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ y,
                                     int CI, int CO, int D, int H, int W, float min_value,
                                     float divisor) {
    constexpr int NEAR_D = ODD_D ? 2 : 1;
    constexpr int NEAR_H = ODD_H ? 2 : 1;
    constexpr int NEAR_W = ODD_W ? 2 : 1;
    const int places_h = H - ODD_H;
    const int places_w = W - ODD_W;
    const int place = blockIdx.x * THREADS + threadIdx.x;
    if (place >= (D - ODD_D) * places_h * places_w) {
        return;
    }
    const int w = place % places_w;
    const int h = place / places_w % places_h;
    const int d = place / (places_w * places_h);
    const int co0 = blockIdx.y * CO_TILE;
    const int channels = min(CO_TILE, CO - co0);
    const int volume = D * H * W;
    const float* in = x + static_cast<long long>(blockIdx.z) * CI * volume + (d * H + h) * W + w;

    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* filters = weight + (ci * CO + co0) * TAPS;
        #pragma unroll
        for (int nd = 0; nd < NEAR_D; ++nd) {
            #pragma unroll
            for (int nh = 0; nh < NEAR_H; ++nh) {
                #pragma unroll
                for (int nw = 0; nw < NEAR_W; ++nw) {
                    const int kd = ODD_D + 1 - 2 * nd;
                    const int kh = ODD_H + 1 - 2 * nh;
                    const int kw = ODD_W + 1 - 2 * nw;
                    const float v = in[(nd * H + nh) * W + nw];
                    #pragma unroll
                    for (int o = 0; o < CO_TILE; ++o) {
                        if (o < channels) {
                            acc[o] += v * filters[o * TAPS + (kd * K + kh) * K + kw];
                        }
                    }
                }
            }
        }
        in += volume;
    }
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        if (o < channels) {
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
            const long long slice = plane * (2 * D - 1) + 2 * d + ODD_D;
            const long long row = slice * (2 * H - 1) + 2 * h + ODD_H;
            y[row * (2 * W - 1) + 2 * w + ODD_W] =
                fmaxf(acc[o] + bias[co0 + o], min_value) / divisor;
        }
    }
}

template <int ODD_D, int ODD_H, int ODD_W>
void launch_class(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
                  int CO, int D, int H, int W, float min_value, float divisor) {
    const int places = (D - ODD_D) * (H - ODD_H) * (W - ODD_W);
    if (places > 0) {
        dim3 grid((places + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
        conv_transpose_class<ODD_D, ODD_H, ODD_W>
            <<<grid, THREADS>>>(x, weight, bias, y, CI, CO, D, H, W, min_value, divisor);
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, float min_value, float divisor) {
    launch_class<0, 0, 0>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<0, 0, 1>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<0, 1, 0>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<0, 1, 1>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<1, 0, 0>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<1, 0, 1>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<1, 1, 0>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
    launch_class<1, 1, 1>(x, weight, bias, y, B, CI, CO, D, H, W, min_value, divisor);
}
