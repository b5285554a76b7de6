// y = relu(conv3x3(x) + conv_bias) + bias, no padding.
//
// A block makes a 16x16 tile of two output channels, two rows a thread. Patches of four
// input channels are staged at a time, so a barrier is paid once per 36 taps.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int TILE = 16;
static constexpr int TY = TILE / 2;
static constexpr int PATCH = TILE + K - 1;
static constexpr int CI_STEP = 4;
static constexpr int CO_TILE = 2;
static constexpr int THREADS = TILE * TY;

__global__ void conv_relu_bias(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ conv_bias,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int H, int W, int HO, int WO, int tiles_w) {
    __shared__ float patch[CI_STEP][PATCH][PATCH];
    __shared__ float taps[CI_STEP][TAPS][CO_TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = blockIdx.x % tiles_w * TILE;
    const int row0 = blockIdx.x / tiles_w * TILE;
    const int co0 = blockIdx.y * CO_TILE;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;

    float acc[2][CO_TILE] = {};
    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        for (int i = tid; i < CI_STEP * PATCH * PATCH; i += THREADS) {
            const int c = i / (PATCH * PATCH);
            const int r = i / PATCH % PATCH;
            const int h = row0 + r;
            const int w = col0 + i % PATCH;
            const bool exists = ci0 + c < CI && h < H && w < W;
            patch[c][r][i % PATCH] = exists ? image[((ci0 + c) * H + h) * W + w] : 0.0f;
        }
        for (int i = tid; i < CI_STEP * TAPS * CO_TILE; i += THREADS) {
            const int tap = i % TAPS;
            const int c = i / TAPS % CI_STEP;
            const int o = i / (TAPS * CI_STEP);
            const bool exists = ci0 + c < CI && co0 + o < CO;
            taps[c][tap][o] =
                exists ? weight[((co0 + o) * CI + ci0 + c) * TAPS + tap] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int c = 0; c < CI_STEP; ++c) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                const int i = ty + tap / K;
                const int j = tx + tap % K;
                #pragma unroll
                for (int o = 0; o < CO_TILE; ++o) {
                    acc[0][o] += patch[c][i][j] * taps[c][tap][o];
                    acc[1][o] += patch[c][i + TY][j] * taps[c][tap][o];
                }
            }
        }
        __syncthreads();
    }

    const int wo = col0 + tx;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int ho = row0 + ty + r * TY;
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            const int co = co0 + o;
            if (ho < HO && wo < WO && co < CO) {
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
                y[(plane * HO + ho) * WO + wo] =
                    fmaxf(acc[r][o] + conv_bias[co], 0.0f) + bias[co];
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int tiles_w = (WO + TILE - 1) / TILE;
    const int tiles_h = (HO + TILE - 1) / TILE;
    dim3 block(TILE, TY);
    dim3 grid(tiles_w * tiles_h, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_relu_bias<<<grid, block>>>(x, weight, conv_bias, bias, y, CI, CO, H, W, HO, WO, tiles_w);
}
