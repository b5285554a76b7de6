// 1D convolution, stride 1, no padding: x[B, CI, L], weight[CO, CI, 3], y[B, CO, L - 2].
//
// A block makes eight channels by 64 positions. Tiles of eight input channels are double
// buffered: while one is used the next is staged, so a step needs a single barrier.

static constexpr int K = 3;
static constexpr int BL = 64;
static constexpr int BC = 8;
static constexpr int SPAN = BL + K - 1;
static constexpr int CI_STEP = 8;
static constexpr int C_PER_THREAD = 4;
static constexpr int TX = BL;
static constexpr int TY = BC / C_PER_THREAD;
static constexpr int THREADS = TX * TY;

__device__ __forceinline__ void stage(float (*tile_x)[SPAN], float (*tile_w)[K][BC],
                                      const float* __restrict__ x,
                                      const float* __restrict__ weight, int n, int ci0, int co0,
                                      int l0, int CI, int CO, int L) {
    const int tid = threadIdx.y * TX + threadIdx.x;
    for (int i = tid; i < CI_STEP * SPAN; i += THREADS) {
        const int c = ci0 + i / SPAN;
        const int l = l0 + i % SPAN;
        const long long row = static_cast<long long>(n) * CI + c;
        tile_x[i / SPAN][i % SPAN] = (c < CI && l < L) ? x[row * L + l] : 0.0f;
    }
    for (int i = tid; i < CI_STEP * K * BC; i += THREADS) {
        const int k = i % K;
        const int c = i / K % CI_STEP;
        const int o = i / (K * CI_STEP);
        const bool exists = ci0 + c < CI && co0 + o < CO;
        tile_w[c][k][o] = exists ? weight[((co0 + o) * CI + ci0 + c) * K + k] : 0.0f;
    }
}

__global__ void conv1d_double_buffered(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CI, int CO, int L, int LO) {
    __shared__ float tile_x[2][CI_STEP][SPAN];
    __shared__ float tile_w[2][CI_STEP][K][BC];

    const int l0 = blockIdx.x * BL;
    const int co0 = blockIdx.y * BC;
    const int n = blockIdx.z;
    const int tx = threadIdx.x;
    const int o0 = threadIdx.y * C_PER_THREAD;

    float acc[C_PER_THREAD] = {0.0f, 0.0f, 0.0f, 0.0f};

    int now = 0;
    stage(tile_x[now], tile_w[now], x, weight, n, 0, co0, l0, CI, CO, L);
    __syncthreads();
    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        if (ci0 + CI_STEP < CI) {
            stage(tile_x[now ^ 1], tile_w[now ^ 1], x, weight, n, ci0 + CI_STEP, co0, l0, CI, CO,
                  L);
        }
        #pragma unroll
        for (int c = 0; c < CI_STEP; ++c) {
            #pragma unroll
            for (int k = 0; k < K; ++k) {
                const float v = tile_x[now][c][tx + k];
                #pragma unroll
                for (int i = 0; i < C_PER_THREAD; ++i) {
                    acc[i] += v * tile_w[now][c][k][o0 + i];
                }
            }
        }
        // The next tile is complete, and nobody reads this one any more.
        __syncthreads();
        now ^= 1;
    }

    const int l = l0 + tx;
    #pragma unroll
    for (int i = 0; i < C_PER_THREAD; ++i) {
        const int co = co0 + o0 + i;
        if (l < LO && co < CO) {
            y[(static_cast<long long>(n) * CO + co) * LO + l] = acc[i];
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int L, int LO) {
    dim3 block(TX, TY);
    dim3 grid((LO + BL - 1) / BL, (CO + BC - 1) / BC, B);
    conv1d_double_buffered<<<grid, block>>>(x, weight, y, CI, CO, L, LO);
}
