// 2D convolution with a 5x9 window, padding (2, 4), dilation (2, 3): x[B, CI, H, W],
// weight[CO, CI, 5, 9], y[B, CO, H - 4, W - 16].
//
// The taps of neighbouring outputs interleave, so the whole dilated patch of a tile is
// staged, padding included, although one output reads only every second row and every
// third column of it. A thread makes four output channels of one place.

static constexpr int KH = 5;
static constexpr int KW = 9;
static constexpr int TAPS = KH * KW;
static constexpr int PAD_H = 2;
static constexpr int PAD_W = 4;
static constexpr int DIL_H = 2;
static constexpr int DIL_W = 3;
static constexpr int TILE = 8;
static constexpr int PATCH_H = TILE + (KH - 1) * DIL_H;
static constexpr int PATCH_W = TILE + (KW - 1) * DIL_W;
static constexpr int CO_TILE = 4;
static constexpr int THREADS = TILE * TILE;

__global__ void conv2d_dilated(const float* __restrict__ x, const float* __restrict__ weight,
                               float* __restrict__ y, int CI, int CO, int H, int W, int HO,
                               int WO) {
    // One column more than needed keeps the rows of a warp on different banks.
    __shared__ float patch[PATCH_H][PATCH_W + 1];
    __shared__ float taps[TAPS][CO_TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = blockIdx.x * TILE - PAD_W;
    const int row0 = blockIdx.y * TILE - PAD_H;
    const int co_tiles = (CO + CO_TILE - 1) / CO_TILE;
    const int n = blockIdx.z / co_tiles;
    const int co0 = blockIdx.z % co_tiles * CO_TILE;

    float acc[CO_TILE] = {};

    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(n) * CI + ci) * H * W;
        for (int r = ty; r < PATCH_H; r += TILE) {
            const int h = row0 + r;
            for (int j = tx; j < PATCH_W; j += TILE) {
                const int w = col0 + j;
                const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                patch[r][j] = inside ? plane[h * W + w] : 0.0f;
            }
        }
        for (int i = tid; i < TAPS * CO_TILE; i += THREADS) {
            const int o = i / TAPS;
            const int tap = i % TAPS;
            taps[tap][o] = co0 + o < CO ? weight[((co0 + o) * CI + ci) * TAPS + tap] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int kh = 0; kh < KH; ++kh) {
            #pragma unroll
            for (int kw = 0; kw < KW; ++kw) {
                const float v = patch[ty + kh * DIL_H][tx + kw * DIL_W];
                #pragma unroll
                for (int o = 0; o < CO_TILE; ++o) {
                    acc[o] += v * taps[kh * KW + kw][o];
                }
            }
        }
        __syncthreads();
    }

    const int ho = blockIdx.y * TILE + ty;
    const int wo = blockIdx.x * TILE + tx;
    if (ho < HO && wo < WO) {
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            if (co0 + o < CO) {
                y[((static_cast<long long>(n) * CO + co0 + o) * HO + ho) * WO + wo] = acc[o];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    dim3 block(TILE, TILE);
    const int co_tiles = (CO + CO_TILE - 1) / CO_TILE;
    dim3 grid((WO + TILE - 1) / TILE, (HO + TILE - 1) / TILE, B * co_tiles);
    conv2d_dilated<<<grid, block>>>(x, weight, y, CI, CO, H, W, HO, WO);
}
