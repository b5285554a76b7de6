// Transposed 1D convolution, stride 1: x[B, CI, L], weight[CI, CO, 3], y[B, CO, L + 2].
//
// A GEMM over channels with a sliding window along L: a block makes 16 channels by 64
// positions. Eight input channels at a time are staged with a halo of two on the left;
// a thread keeps 4x2 sums, four channels by two positions, and six taps meet them.

static constexpr int K = 3;
static constexpr int HALO = K - 1;
static constexpr int BL = 64;
static constexpr int BC = 16;
static constexpr int CI_STEP = 8;
static constexpr int TX = 32;
static constexpr int TY = 4;
static constexpr int THREADS = TX * TY;
static constexpr int C_PER_THREAD = BC / TY;
static constexpr int L_PER_THREAD = BL / TX;

__global__ void conv_transpose1d_tiled(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CI, int CO, int L, int LO) {
    __shared__ float tile_x[CI_STEP][BL + HALO];
    __shared__ float tile_w[CI_STEP][K][BC];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int l0 = blockIdx.x * BL;
    const int co0 = blockIdx.y * BC;

    float acc[C_PER_THREAD][L_PER_THREAD] = {};

    for (int ci0 = 0; ci0 < CI; ci0 += CI_STEP) {
        for (int i = tid; i < CI_STEP * (BL + HALO); i += THREADS) {
            const int c = i / (BL + HALO);
            const int l = l0 + i % (BL + HALO) - HALO;
            const bool exists = ci0 + c < CI && l >= 0 && l < L;
            const long long row = static_cast<long long>(blockIdx.z) * CI + ci0 + c;
            tile_x[c][i % (BL + HALO)] = exists ? x[row * L + l] : 0.0f;
        }
        for (int i = tid; i < CI_STEP * K * BC; i += THREADS) {
            const int o = i % BC;
            const int k = i / BC % K;
            const int c = i / (BC * K);
            const bool exists = ci0 + c < CI && co0 + o < CO;
            tile_w[c][k][o] = exists ? weight[((ci0 + c) * CO + co0 + o) * K + k] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int c = 0; c < CI_STEP; ++c) {
            #pragma unroll
            for (int k = 0; k < K; ++k) {
                #pragma unroll
                for (int j = 0; j < L_PER_THREAD; ++j) {
                    // Output l takes input l - k through tap k.
                    const float v = tile_x[c][tx + j * TX + HALO - k];
                    #pragma unroll
                    for (int i = 0; i < C_PER_THREAD; ++i) {
                        acc[i][j] += v * tile_w[c][k][ty * C_PER_THREAD + i];
                    }
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < C_PER_THREAD; ++i) {
        const int co = co0 + ty * C_PER_THREAD + i;
        #pragma unroll
        for (int j = 0; j < L_PER_THREAD; ++j) {
            const int l = l0 + tx + j * TX;
            if (co < CO && l < LO) {
                y[(static_cast<long long>(blockIdx.z) * CO + co) * LO + l] = acc[i][j];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int L, int LO) {
    dim3 block(TX, TY);
    dim3 grid((LO + BL - 1) / BL, (CO + BC - 1) / BC, B);
    conv_transpose1d_tiled<<<grid, block>>>(x, weight, y, CI, CO, L, LO);
}
