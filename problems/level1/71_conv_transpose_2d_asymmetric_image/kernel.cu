// Transposed 2D convolution, stride 1: x[B, CI, H, W], weight[CI, CO, 3, 3],
// y[B, CO, H + 2, W + 2].
//
// A thread makes a 2x2 quad of outputs. The quad meets a 4x4 patch of inputs, which the
// thread loads into registers once per channel: 16 loads for 36 multiply-adds. All
// threads of a block share one filter, so its loads are broadcasts.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int QUAD = 2;
static constexpr int PATCH = QUAD + K - 1;
static constexpr int TX = 16;
static constexpr int TY = 8;

__global__ void conv_transpose_quads(const float* __restrict__ x,
                                     const float* __restrict__ weight, float* __restrict__ y,
                                     int CI, int CO, int H, int W, int HO, int WO) {
    const int wo = (blockIdx.x * TX + threadIdx.x) * QUAD;
    const int ho = (blockIdx.y * TY + threadIdx.y) * QUAD;
    const int n = blockIdx.z / CO;
    const int co = blockIdx.z % CO;
    if (ho >= HO || wo >= WO) {
        return;
    }

    float acc[QUAD][QUAD] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(n) * CI + ci) * H * W;
        float patch[PATCH][PATCH];
        #pragma unroll
        for (int i = 0; i < PATCH; ++i) {
            const int h = ho + i - (K - 1);
            #pragma unroll
            for (int j = 0; j < PATCH; ++j) {
                const int w = wo + j - (K - 1);
                const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                patch[i][j] = inside ? __ldg(plane + h * W + w) : 0.0f;
            }
        }
        const float* filter = weight + (ci * CO + co) * TAPS;
        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                const float tap = __ldg(filter + kh * K + kw);
                #pragma unroll
                for (int i = 0; i < QUAD; ++i) {
                    #pragma unroll
                    for (int j = 0; j < QUAD; ++j) {
                        acc[i][j] += tap * patch[i + K - 1 - kh][j + K - 1 - kw];
                    }
                }
            }
        }
    }

    float* out = y + (static_cast<long long>(n) * CO + co) * HO * WO;
    #pragma unroll
    for (int i = 0; i < QUAD; ++i) {
        #pragma unroll
        for (int j = 0; j < QUAD; ++j) {
            if (ho + i < HO && wo + j < WO) {
                out[(ho + i) * WO + wo + j] = acc[i][j];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    dim3 block(TX, TY);
    dim3 grid((WO + TX * QUAD - 1) / (TX * QUAD), (HO + TY * QUAD - 1) / (TY * QUAD), B * CO);
    conv_transpose_quads<<<grid, block>>>(x, weight, y, CI, CO, H, W, HO, WO);
}
