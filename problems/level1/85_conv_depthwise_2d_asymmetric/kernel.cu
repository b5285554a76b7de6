// Depthwise 2D convolution with a 3x7 window: x[B, C, H, W], weight[C, 1, 3, 7],
// y[B, C, H - 2, W - 6].
//
// A warp makes one output row piece. Each lane loads one column of three rows, and the seven
// taps of a row read the neighbours' registers by shuffle: no shared memory, no barrier.
// The last six lanes only lend their columns.

static constexpr int KH = 3;
static constexpr int KW = 7;
static constexpr int WARP = 32;
static constexpr int COLUMNS = WARP - (KW - 1);
static constexpr int WARPS = 4;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__global__ void depthwise_shuffle(const float* __restrict__ x, const float* __restrict__ weight,
                                  float* __restrict__ y, int C, int H, int W, int HO, int WO) {
    const int lane = threadIdx.x;
    const int w = blockIdx.x * COLUMNS + lane;
    const int ho = blockIdx.y * WARPS + threadIdx.y;
    // A whole warp leaves at once: the shuffles below always see 32 lanes.
    if (ho >= HO) {
        return;
    }
    const float* plane = x + static_cast<long long>(blockIdx.z) * H * W;
    const float* taps = weight + blockIdx.z % C * (KH * KW);

    float sum = 0.0f;
    #pragma unroll
    for (int kh = 0; kh < KH; ++kh) {
        const float own = w < W ? plane[(ho + kh) * W + w] : 0.0f;
        #pragma unroll
        for (int kw = 0; kw < KW; ++kw) {
            sum += __shfl_down_sync(FULL_MASK, own, kw) * taps[kh * KW + kw];
        }
    }

    if (lane < COLUMNS && w < WO) {
        y[(static_cast<long long>(blockIdx.z) * HO + ho) * WO + w] = sum;
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int C, int H, int W, int HO, int WO) {
    dim3 block(WARP, WARPS);
    dim3 grid((WO + COLUMNS - 1) / COLUMNS, (HO + WARPS - 1) / WARPS, B * C);
    depthwise_shuffle<<<grid, block>>>(x, weight, y, C, H, W, HO, WO);
}
