// y = gelu(min(transposed conv4x4(x) + bias + add, 0)) * multiply, stride 2, no padding.
//
// Outputs of one parity of row and column meet the same four taps. For each of the four
// classes the convolution is an ordinary 2x2 one, made as an implicit GEMM: 16 channels by
// 32 positions a block, the reduction over (input channel, tap of the class).

static constexpr int K = 4;
static constexpr int TAPS = K * K;
static constexpr int CLASS_TAPS = 4;
static constexpr int CLASSES = 4;
static constexpr int BM = 16;
static constexpr int BN = 32;
static constexpr int BK = 16;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

__global__ void class_gemm(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias, float* __restrict__ y, int CI, int CO,
                           int H, int W, int HO, int WO, float add_value,
                           float multiply_value) {
    __shared__ float tile_w[BK][BM + 1];
    __shared__ float tile_x[BK][BN];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int n = blockIdx.z / CLASSES;
    const int odd_h = blockIdx.z % CLASSES / 2;
    const int odd_w = blockIdx.z % 2;
    const int co0 = blockIdx.y * BM;
    const int p0 = blockIdx.x * BN;
    // A class has one place more than the image along each axis.
    const int places_w = W + 1;
    const int places = (H + 1) * places_w;
    const int terms = CI * CLASS_TAPS;
    const float* image = x + static_cast<long long>(n) * CI * H * W;

    const int staged = p0 + tid % BN;
    const int i = staged / places_w;
    const int j = staged % places_w;

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int k0 = 0; k0 < terms; k0 += BK) {
        #pragma unroll
        for (int s = tid; s < BK * BM; s += THREADS) {
            const int k = k0 + s / BM;
            const int co = co0 + s % BM;
            // Tap t of the class is the window's tap (odd_h + 2 (t / 2), odd_w + 2 (t % 2)).
            const int t = k % CLASS_TAPS;
            const int tap = (odd_h + t / 2 * 2) * K + odd_w + t % 2 * 2;
            const bool exists = k < terms && co < CO;
            tile_w[s / BM][s % BM] =
                exists ? weight[(k / CLASS_TAPS * CO + co) * TAPS + tap] : 0.0f;
        }
        #pragma unroll
        for (int s = tid / BN; s < BK; s += THREADS / BN) {
            const int k = k0 + s;
            const int h = i - k % CLASS_TAPS / 2;
            const int w = j - k % 2;
            const bool exists = k < terms && staged < places && h >= 0 && h < H && w >= 0 && w < W;
            const long long plane = k / CLASS_TAPS;
            tile_x[s][tid % BN] = exists ? image[(plane * H + h) * W + w] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float w0 = tile_w[k][ty];
            const float w1 = tile_w[k][ty + TY];
            const float x0 = tile_x[k][tx];
            const float x1 = tile_x[k][tx + TX];
            acc[0][0] += w0 * x0;
            acc[0][1] += w0 * x1;
            acc[1][0] += w1 * x0;
            acc[1][1] += w1 * x1;
        }
        __syncthreads();
    }

    #pragma unroll
    for (int a = 0; a < 2; ++a) {
        const int co = co0 + ty + a * TY;
        #pragma unroll
        for (int b = 0; b < 2; ++b) {
            const int p = p0 + tx + b * TX;
            if (co < CO && p < places) {
                const float v = fminf(acc[a][b] + bias[co] + add_value, 0.0f);
                const long long plane = static_cast<long long>(n) * CO + co;
                const int ho = p / places_w * 2 + odd_h;
                const int wo = p % places_w * 2 + odd_w;
                y[(plane * HO + ho) * WO + wo] =
                    0.5f * v * (1.0f + erff(v * INV_SQRT_2)) * multiply_value;
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int H, int W, int HO, int WO, float add_value, float multiply_value) {
    const int places = (H + 1) * (W + 1);
    dim3 block(TX, TY);
    dim3 grid((places + BN - 1) / BN, (CO + BM - 1) / BM, B * CLASSES);
    class_gemm<<<grid, block>>>(x, weight, bias, y, CI, CO, H, W, HO, WO, add_value,
                                multiply_value);
}
