// 3D convolution as an implicit GEMM: y[co, p] = sum over k of weight[co, k] * cols[k, p],
// where k runs over (ci, kd, kh, kw) and p over (batch, depth, height, width).
//
// The column matrix is never stored: a block gathers a 16x32 tile of it straight from x.
// Every thread owns a 2x2 corner of a tile of 16 channels by 32 positions.

static constexpr int KD = 3;
static constexpr int KH = 5;
static constexpr int KW = 7;
static constexpr int TAPS = KD * KH * KW;
static constexpr int BM = 16;
static constexpr int BN = 32;
static constexpr int BK = 16;
static constexpr int THREADS_X = 16;
static constexpr int THREADS_Y = 8;
static constexpr int THREADS = THREADS_X * THREADS_Y;

__global__ void conv3d_implicit_gemm(const float* __restrict__ x,
                                     const float* __restrict__ weight, float* __restrict__ y,
                                     int CI, int CO, int S, int DO, int HO, int WO,
                                     int all_positions) {
    __shared__ float tile_w[BM][BK + 1];
    __shared__ float tile_c[BK][BN];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * THREADS_X + tx;
    const int p0 = blockIdx.x * BN;
    const int co0 = blockIdx.y * BM;
    const int terms = CI * TAPS;
    const int volume = DO * HO * WO;

    // A thread gathers the same column of every tile, so its position is taken apart once.
    const int column = tid % BN;
    const int gathered = p0 + column;
    const int n = gathered / volume;
    const int within = gathered % volume;
    const int wo = within % WO;
    const int ho = within / WO % HO;
    const int dz = within / (WO * HO);
    const long long corner = static_cast<long long>(n) * CI * S * S * S + (dz * S + ho) * S + wo;

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};

    for (int k0 = 0; k0 < terms; k0 += BK) {
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int row = i / BK;
            const int k = k0 + i % BK;
            const bool exists = co0 + row < CO && k < terms;
            tile_w[row][i % BK] = exists ? weight[(co0 + row) * terms + k] : 0.0f;
        }
        for (int row = tid / BN; row < BK; row += THREADS / BN) {
            const int k = k0 + row;
            float v = 0.0f;
            if (k < terms && gathered < all_positions) {
                const int kw = k % KW;
                const int kh = k / KW % KH;
                const int kd = k / (KW * KH) % KD;
                const int ci = k / TAPS;
                v = x[corner + ((ci * S + kd) * S + kh) * S + kw];
            }
            tile_c[row][column] = v;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float w0 = tile_w[ty][k];
            const float w1 = tile_w[ty + THREADS_Y][k];
            const float c0 = tile_c[k][tx];
            const float c1 = tile_c[k][tx + THREADS_X];
            acc[0][0] += w0 * c0;
            acc[0][1] += w0 * c1;
            acc[1][0] += w1 * c0;
            acc[1][1] += w1 * c1;
        }
        __syncthreads();
    }

    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        const int p = p0 + tx + j * THREADS_X;
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int co = co0 + ty + i * THREADS_Y;
            if (p < all_positions && co < CO) {
                const long long plane = static_cast<long long>(p / volume) * CO + co;
                y[plane * volume + p % volume] = acc[i][j];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int S, int DO, int HO, int WO) {
    const int all_positions = B * DO * HO * WO;
    dim3 block(THREADS_X, THREADS_Y);
    dim3 grid((all_positions + BN - 1) / BN, (CO + BM - 1) / BM);
    conv3d_implicit_gemm<<<grid, block>>>(x, weight, y, CI, CO, S, DO, HO, WO, all_positions);
}
