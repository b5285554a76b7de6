// y = (min(conv3x3(x) + conv_bias, constant) + bias) * scaling as an implicit GEMM.
//
// The reduction runs over taps outside and channels inside: for one tap the columns of 16
// channels are 16 shifted copies of the same pixels, so an address moves by one plane from
// row to row and nothing is divided in the inner staging loop.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int BM = 16;
static constexpr int BN = 32;
static constexpr int BK = 16;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;

__global__ void conv_implicit_gemm(const float* __restrict__ x, const float* __restrict__ weight,
                                   const float* __restrict__ conv_bias,
                                   const float* __restrict__ bias, float* __restrict__ y, int CI,
                                   int CO, int H, int W, int HO, int WO, float constant_value,
                                   float scaling_factor) {
    __shared__ float tile_w[BM][BK + 1];
    __shared__ float tile_x[BK][BN];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int pixels = HO * WO;
    const int co0 = blockIdx.y * BM;
    // The pixel whose column a thread stages.
    const int staged = blockIdx.x * BN + tid % BN;
    const bool staged_inside = staged < pixels;
    const int plane = H * W;
    const float* corner = x + static_cast<long long>(blockIdx.z) * CI * plane +
                          (staged_inside ? staged / WO * W + staged % WO : 0);

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int tap = 0; tap < TAPS; ++tap) {
        const float* shifted = corner + tap / K * W + tap % K;
        for (int c0 = 0; c0 < CI; c0 += BK) {
            #pragma unroll
            for (int i = tid; i < BM * BK; i += THREADS) {
                const int co = co0 + i / BK;
                const int c = c0 + i % BK;
                tile_w[i / BK][i % BK] =
                    (co < CO && c < CI) ? weight[(co * CI + c) * TAPS + tap] : 0.0f;
            }
            #pragma unroll
            for (int i = tid / BN; i < BK; i += THREADS / BN) {
                const bool exists = staged_inside && c0 + i < CI;
                tile_x[i][tid % BN] = exists ? shifted[(c0 + i) * plane] : 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                const float w0 = tile_w[ty][k];
                const float w1 = tile_w[ty + TY][k];
                const float x0 = tile_x[k][tx];
                const float x1 = tile_x[k][tx + TX];
                acc[0][0] += w0 * x0;
                acc[0][1] += w0 * x1;
                acc[1][0] += w1 * x0;
                acc[1][1] += w1 * x1;
            }
            __syncthreads();
        }
    }

    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int co = co0 + ty + i * TY;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int p = blockIdx.x * BN + tx + j * TX;
            if (co < CO && p < pixels) {
                const float h = fminf(acc[i][j] + conv_bias[co], constant_value);
                y[(static_cast<long long>(blockIdx.z) * CO + co) * pixels + p] =
                    (h + bias[co]) * scaling_factor;
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO, float constant_value,
            float scaling_factor) {
    dim3 block(TX, TY);
    dim3 grid((HO * WO + BN - 1) / BN, (CO + BM - 1) / BM, B);
    conv_implicit_gemm<<<grid, block>>>(x, weight, conv_bias, bias, y, CI, CO, H, W, HO, WO,
                                        constant_value, scaling_factor);
}
