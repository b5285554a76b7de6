// Transposed 3D convolution with a 3x3x3 window, stride 2, padding 1, four groups:
// x[B, 4 CG, D, H, W], weight[4 CG, OG, 3, 3, 3], y[B, 4 OG, 2 D - 1, 2 H - 1, 2 W - 1].
//
// A thread makes the outputs 2 j and 2 j + 1 of a row. The even one meets input j through
// tap 1; the odd one meets input j through tap 2 and j + 1 through tap 0: two inputs,
// three multiply-adds. Depth and row of a block are fixed, so parity never diverges there.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int GROUPS = 4;
static constexpr int THREADS = 32;

__global__ void conv_transpose3d_pairs(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CG, int OG, int D, int H, int W, int DO, int HO,
                                       int WO) {
    const int j = blockIdx.x * THREADS + threadIdx.x;
    const int dz = blockIdx.y / HO;
    const int ho = blockIdx.y % HO;
    const int n = blockIdx.z / (GROUPS * OG);
    const int co = blockIdx.z % (GROUPS * OG);
    const int group = co / OG;
    if (j >= W) {
        return;
    }
    // The last pair of a row has no second half and no input j + 1.
    const bool pair = j + 1 < W;

    float even = 0.0f;
    float odd = 0.0f;
    for (int c = 0; c < CG; ++c) {
        const int ci = group * CG + c;
        const long long channel = (static_cast<long long>(n) * GROUPS * CG + ci) * D;
        const float* filter = weight + (ci * OG + co % OG) * TAPS;
        // An even place takes tap 1, an odd one taps 0 and 2.
        for (int kd = (dz + 1) % 2; kd < K; kd += 2) {
            const int d = (dz + 1 - kd) / 2;
            if (d < 0 || d >= D) {
                continue;
            }
            for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
                const int h = (ho + 1 - kh) / 2;
                if (h < 0 || h >= H) {
                    continue;
                }
                const float* row = x + ((channel + d) * H + h) * W + j;
                const float* taps = filter + (kd * K + kh) * K;
                const float here = row[0];
                const float next = pair ? row[1] : 0.0f;
                even += here * taps[1];
                odd += here * taps[2];
                odd += next * taps[0];
            }
        }
    }

    const long long plane = static_cast<long long>(n) * GROUPS * OG + co;
    float* out = y + ((plane * DO + dz) * HO + ho) * WO + 2 * j;
    out[0] = even;
    if (pair) {
        out[1] = odd;
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CG, int OG, int CO, int D, int H, int W, int DO, int HO, int WO) {
    dim3 grid((W + THREADS - 1) / THREADS, DO * HO, B * CO);
    conv_transpose3d_pairs<<<grid, THREADS>>>(x, weight, y, CG, OG, D, H, W, DO, HO, WO);
}
