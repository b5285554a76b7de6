// Transposed 2D convolution, stride 1: x[B, CI, H, W], weight[CI, CO, 3, 7],
// y[B, CO, H + 2, W + 6].
//
// The same as an ordinary convolution of the zero-padded image with the reversed filter:
// the patch is staged with its zeros, the filter is reversed while it is staged, and the
// inner loop is that of a forward convolution. Four input channels share a stage.

static constexpr int KH = 3;
static constexpr int KW = 7;
static constexpr int TAPS = KH * KW;
static constexpr int TILE = 16;
static constexpr int PATCH_H = TILE + KH - 1;
static constexpr int PATCH_W = TILE + KW - 1;
static constexpr int CI_STEP = 4;
static constexpr int CO_TILE = 2;
static constexpr int THREADS = TILE * TILE;

__global__ void conv_transpose_as_conv(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CI, int CO, int H, int W, int HO, int WO,
                                       int tiles_w) {
    __shared__ float patch[CI_STEP][PATCH_H][PATCH_W];
    __shared__ float taps[CI_STEP][CO_TILE][TAPS];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = blockIdx.x % tiles_w * TILE;
    const int row0 = blockIdx.x / tiles_w * TILE;
    const int co0 = blockIdx.y * CO_TILE;

    float acc[CO_TILE] = {0.0f, 0.0f};

    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        for (int i = tid; i < CI_STEP * PATCH_H * PATCH_W; i += THREADS) {
            const int j = i % PATCH_W;
            const int r = i / PATCH_W % PATCH_H;
            const int c = i / (PATCH_W * PATCH_H);
            const int h = row0 + r - (KH - 1);
            const int w = col0 + j - (KW - 1);
            const bool exists = ci0 + c < CI && h >= 0 && h < H && w >= 0 && w < W;
            const long long plane = static_cast<long long>(blockIdx.z) * CI + ci0 + c;
            patch[c][r][j] = exists ? x[(plane * H + h) * W + w] : 0.0f;
        }
        for (int i = tid; i < CI_STEP * CO_TILE * TAPS; i += THREADS) {
            const int tap = i % TAPS;
            const int o = i / TAPS % CO_TILE;
            const int c = i / (TAPS * CO_TILE);
            const bool exists = ci0 + c < CI && co0 + o < CO;
            const int reversed = TAPS - 1 - tap;
            taps[c][o][tap] =
                exists ? weight[((ci0 + c) * CO + co0 + o) * TAPS + reversed] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int c = 0; c < CI_STEP; ++c) {
            #pragma unroll
            for (int kh = 0; kh < KH; ++kh) {
                #pragma unroll
                for (int kw = 0; kw < KW; ++kw) {
                    const float v = patch[c][ty + kh][tx + kw];
                    #pragma unroll
                    for (int o = 0; o < CO_TILE; ++o) {
                        acc[o] += v * taps[c][o][kh * KW + kw];
                    }
                }
            }
        }
        __syncthreads();
    }

    const int ho = row0 + ty;
    const int wo = col0 + tx;
    if (ho < HO && wo < WO) {
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
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
    dim3 grid(tiles_w * tiles_h, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_transpose_as_conv<<<grid, block>>>(x, weight, y, CI, CO, H, W, HO, WO, tiles_w);
}
