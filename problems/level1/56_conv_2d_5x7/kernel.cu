// 2D convolution with a 5x7 window, stride 1, no padding: x[B, CI, H, W],
// weight[CO, CI, 5, 7], y[B, CO, H - 4, W - 6].
//
// A thread makes four neighbouring outputs of two channels. Of each input row it holds the
// ten values that their windows cover in registers: 56 products for ten loads. The weights
// of one input channel at a time, for the block's four output channels, sit in shared memory.

static constexpr int KH = 5;
static constexpr int KW = 7;
static constexpr int OUTPUTS = 4;
static constexpr int CHANNELS = 2;
static constexpr int PAIRS = 2;
static constexpr int BLOCK_CHANNELS = CHANNELS * PAIRS;
static constexpr int SPAN = OUTPUTS + KW - 1;
static constexpr int THREADS_X = 8;
static constexpr int THREADS_Y = 4;
static constexpr int COLS = THREADS_X * OUTPUTS;
static constexpr int THREADS = THREADS_X * THREADS_Y * PAIRS;
static constexpr int STAGED = BLOCK_CHANNELS * KH * KW;

__global__ void conv2d_sliding(const float* __restrict__ x, const float* __restrict__ weight,
                               float* __restrict__ y, int CI, int CO, int H, int W,
                               int HO, int WO, int tiles_w) {
    __shared__ float taps[BLOCK_CHANNELS][KH][KW];

    const int tid = (threadIdx.z * THREADS_Y + threadIdx.y) * THREADS_X + threadIdx.x;
    const int wo0 = blockIdx.x % tiles_w * COLS + threadIdx.x * OUTPUTS;
    const int ho = blockIdx.x / tiles_w * THREADS_Y + threadIdx.y;
    const int block_co = blockIdx.y * BLOCK_CHANNELS;
    const int first = threadIdx.z * CHANNELS;

    float acc[CHANNELS][OUTPUTS] = {};

    for (int ci = 0; ci < CI; ++ci) {
        for (int i = tid; i < STAGED; i += THREADS) {
            const int c = i / (KH * KW);
            const int tap = i % (KH * KW);
            taps[c][tap / KW][tap % KW] =
                block_co + c < CO ? weight[((block_co + c) * CI + ci) * KH * KW + tap] : 0.0f;
        }
        __syncthreads();

        const float* plane = x + (static_cast<long long>(blockIdx.z) * CI + ci) * H * W;
        #pragma unroll
        for (int i = 0; i < KH; ++i) {
            const int h = ho + i;
            float span[SPAN];
            #pragma unroll
            for (int t = 0; t < SPAN; ++t) {
                // Beyond the edge lie only inputs of outputs that nobody stores.
                span[t] = (h < H && wo0 + t < W) ? plane[h * W + wo0 + t] : 0.0f;
            }
            #pragma unroll
            for (int j = 0; j < KW; ++j) {
                #pragma unroll
                for (int c = 0; c < CHANNELS; ++c) {
                    const float tap = taps[first + c][i][j];
                    #pragma unroll
                    for (int o = 0; o < OUTPUTS; ++o) {
                        acc[c][o] += span[o + j] * tap;
                    }
                }
            }
        }
        __syncthreads();
    }

    if (ho < HO) {
        #pragma unroll
        for (int c = 0; c < CHANNELS; ++c) {
            const int co = block_co + first + c;
            if (co < CO) {
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
                float* out = y + (plane * HO + ho) * WO;
                #pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) {
                    if (wo0 + o < WO) {
                        out[wo0 + o] = acc[c][o];
                    }
                }
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int tiles_w = (WO + COLS - 1) / COLS;
    const int tiles_h = (HO + THREADS_Y - 1) / THREADS_Y;
    dim3 block(THREADS_X, THREADS_Y, PAIRS);
    dim3 grid(tiles_w * tiles_h, (CO + BLOCK_CHANNELS - 1) / BLOCK_CHANNELS, B);
    conv2d_sliding<<<grid, block>>>(x, weight, y, CI, CO, H, W, HO, WO, tiles_w);
}
