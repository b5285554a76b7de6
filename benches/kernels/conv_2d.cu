// 2D convolution, stride 1, no padding: x[B, CI, H, W], weight[CO, CI, 3, 3],
// y[B, CO, H - 2, W - 2].
//
// A block makes 16x16 outputs of four output channels. Per input channel it stages the
// 18x18 input patch and the weights in shared memory; a thread reuses every input value
// for its four channels from a register.

static constexpr int TILE = 16;
static constexpr int OUT_PER_THREAD = 4;

template <int K>
__global__ void conv2d_tiled(const float* __restrict__ x, const float* __restrict__ weight,
                             float* __restrict__ y, int CI, int CO, int H, int W,
                             int HO, int WO, int tiles_w) {
    constexpr int PATCH = TILE + K - 1;
    __shared__ float patch[PATCH][PATCH];
    __shared__ float taps[OUT_PER_THREAD][K * K];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = (blockIdx.x % tiles_w) * TILE;
    const int row0 = (blockIdx.x / tiles_w) * TILE;
    const int co0 = blockIdx.y * OUT_PER_THREAD;
    const int n = blockIdx.z;

    float acc[OUT_PER_THREAD];
    #pragma unroll
    for (int o = 0; o < OUT_PER_THREAD; ++o) {
        acc[o] = 0.0f;
    }

    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(n) * CI + ci) * H * W;
        for (int i = tid; i < PATCH * PATCH; i += TILE * TILE) {
            const int h = row0 + i / PATCH;
            const int w = col0 + i % PATCH;
            patch[i / PATCH][i % PATCH] = (h < H && w < W) ? plane[h * W + w] : 0.0f;
        }
        if (tid < OUT_PER_THREAD * K * K) {
            const int o = tid / (K * K);
            const int tap = tid % (K * K);
            taps[o][tap] = co0 + o < CO ? weight[((co0 + o) * CI + ci) * K * K + tap] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                const float v = patch[ty + kh][tx + kw];
                #pragma unroll
                for (int o = 0; o < OUT_PER_THREAD; ++o) {
                    acc[o] += v * taps[o][kh * K + kw];
                }
            }
        }
        __syncthreads();
    }

    const int ho = row0 + ty;
    const int wo = col0 + tx;
    if (ho < HO && wo < WO) {
        #pragma unroll
        for (int o = 0; o < OUT_PER_THREAD; ++o) {
            if (co0 + o < CO) {
                // The output holds 2.1e9 elements at the official extents.
                y[((static_cast<long long>(n) * CO + co0 + o) * HO + ho) * WO + wo] = acc[o];
            }
        }
    }
}
