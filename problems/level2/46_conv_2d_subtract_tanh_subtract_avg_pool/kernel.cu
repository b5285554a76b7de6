// y = average pool 2x2 of (tanh(conv3x3(x) + bias - first) - second).
//
// A block makes a 16x16 tile of the convolution, staging two input channels at a time,
// leaves it in shared memory after the tanh, and a quarter of its threads averages 2x2
// squares from there. Tiles begin at even places, so no square straddles two of them.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int TILE = 16;
static constexpr int PATCH = TILE + K - 1;
static constexpr int THREADS = TILE * TILE;
static constexpr int CI_STEP = 2;

__global__ void conv_tanh_pool(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int H, int W, int PH, int PW, int tiles_w,
                               float subtract1_value, float subtract2_value) {
    __shared__ float patch[CI_STEP][PATCH][PATCH + 1];
    __shared__ float taps[CI_STEP][TAPS];
    __shared__ float tile[TILE][TILE + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = blockIdx.x % tiles_w * TILE;
    const int row0 = blockIdx.x / tiles_w * TILE;
    const int co = blockIdx.y;

    float sum = bias[co] - subtract1_value;
    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        for (int i = tid; i < CI_STEP * PATCH * PATCH; i += THREADS) {
            const int c = i / (PATCH * PATCH);
            const int r = i / PATCH % PATCH;
            const int h = row0 + r;
            const int w = col0 + i % PATCH;
            const bool exists = ci0 + c < CI && h < H && w < W;
            const long long plane = static_cast<long long>(blockIdx.z) * CI + ci0 + c;
            patch[c][r][i % PATCH] = exists ? x[(plane * H + h) * W + w] : 0.0f;
        }
        if (tid < CI_STEP * TAPS) {
            const int c = tid / TAPS;
            taps[c][tid % TAPS] =
                ci0 + c < CI ? weight[(co * CI + ci0 + c) * TAPS + tid % TAPS] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int c = 0; c < CI_STEP; ++c) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                sum += patch[c][ty + tap / K][tx + tap % K] * taps[c][tap];
            }
        }
        __syncthreads();
    }
    tile[ty][tx] = tanhf(sum) - subtract2_value;
    __syncthreads();

    const int side = TILE / 2;
    if (tid < side * side) {
        const int i = tid / side;
        const int j = tid % side;
        const int ph = row0 / 2 + i;
        const int pw = col0 / 2 + j;
        if (ph < PH && pw < PW) {
            const float total = tile[2 * i][2 * j] + tile[2 * i][2 * j + 1] +
                                tile[2 * i + 1][2 * j] + tile[2 * i + 1][2 * j + 1];
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
            y[(plane * PH + ph) * PW + pw] = total * 0.25f;
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int H, int W, int PH, int PW, float subtract1_value, float subtract2_value) {
    const int tiles_w = (2 * PW + TILE - 1) / TILE;
    const int tiles_h = (2 * PH + TILE - 1) / TILE;
    dim3 block(TILE, TILE);
    dim3 grid(tiles_w * tiles_h, CO, B);
    conv_tanh_pool<<<grid, block>>>(x, weight, bias, y, CI, CO, H, W, PH, PW, tiles_w,
                                    subtract1_value, subtract2_value);
}
