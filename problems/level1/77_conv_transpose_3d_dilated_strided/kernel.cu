// Transposed 3D convolution with a 3x3x3 window, stride 2, padding 1, dilation 2:
// x[B, CI, D, H, W], weight[CI, CO, 3, 3, 3], y[B, CO, 2 D + 1, 2 H + 1, 2 W + 1].
//
// Output o meets input i through tap k where o = 2 i - 1 + 2 k: only odd places are ever
// reached. With o = 2 j + 1 the sum is that of an ordinary transposed convolution with
// padding 1 on j, so the tensor is cleared and a dense kernel fills the odd lattice.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int WARP = 32;
static constexpr int ROWS = 4;

// One warp per lattice row (jd, jh), one lane per jw.
__global__ void fill_odd_lattice(const float* __restrict__ x, const float* __restrict__ weight,
                                 float* __restrict__ y, int CI, int CO, int D, int H, int W,
                                 int DO, int HO, int WO) {
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const int jd = row / H;
    const int jh = row % H;
    const int co = blockIdx.y;
    const int n = blockIdx.z;
    if (row >= D * H) {
        return;
    }
    const int kd_first = max(0, jd + 2 - D);
    const int kd_last = min(K - 1, jd + 1);
    const int kh_first = max(0, jh + 2 - H);
    const int kh_last = min(K - 1, jh + 1);

    for (int jw = threadIdx.x; jw < W; jw += WARP) {
        float sum = 0.0f;
        for (int ci = 0; ci < CI; ++ci) {
            const float* volume = x + (static_cast<long long>(n) * CI + ci) * D * H * W;
            const float* filter = weight + (ci * CO + co) * TAPS;
            for (int kd = kd_first; kd <= kd_last; ++kd) {
                for (int kh = kh_first; kh <= kh_last; ++kh) {
                    const float* in = volume + ((jd + 1 - kd) * H + jh + 1 - kh) * W;
                    const float* taps = filter + (kd * K + kh) * K;
                    if (jw + 1 < W) {
                        sum += in[jw + 1] * taps[0];
                    }
                    sum += in[jw] * taps[1];
                    if (jw > 0) {
                        sum += in[jw - 1] * taps[2];
                    }
                }
            }
        }
        const long long plane = static_cast<long long>(n) * CO + co;
        y[((plane * DO + 2 * jd + 1) * HO + 2 * jh + 1) * WO + 2 * jw + 1] = sum;
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    const long long outputs = static_cast<long long>(B) * CO * DO * HO * WO;
    cudaMemset(y, 0, outputs * sizeof(float));
    dim3 block(WARP, ROWS);
    dim3 grid((D * H + ROWS - 1) / ROWS, CO, B);
    fill_odd_lattice<<<grid, block>>>(x, weight, y, CI, CO, D, H, W, DO, HO, WO);
}
