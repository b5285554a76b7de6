// Transposed 3x3 convolution with stride 2, padding 1, output padding 1, then Mish, add,
// clamp and scaling.
//
// A GEMM multiplies every input pixel by all taps of all output channels; the gather that
// follows picks, for each output, the one, two or four products that fall on it, and applies
// the epilogue.

#include "mish.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int BM = 16;
static constexpr int BN = 32;
static constexpr int BK = 16;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;

// cols[row, p] = sum over ci of weight[ci, row] * x[ci, p]; rows are (channel, tap) pairs.
__global__ void columns_gemm(const float* __restrict__ weight, const float* __restrict__ x,
                             float* __restrict__ cols, int CI, int rows, int pixels) {
    __shared__ float tile_w[BK][BM];
    __shared__ float tile_x[BK][BN];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int row0 = blockIdx.y * BM;
    const int p0 = blockIdx.x * BN;

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int c0 = 0; c0 < CI; c0 += BK) {
        #pragma unroll
        for (int i = tid; i < BK * BM; i += THREADS) {
            const int c = c0 + i / BM;
            const int row = row0 + i % BM;
            tile_w[i / BM][i % BM] = (c < CI && row < rows) ? weight[c * rows + row] : 0.0f;
        }
        #pragma unroll
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int c = c0 + i / BN;
            const int p = p0 + i % BN;
            tile_x[i / BN][i % BN] = (c < CI && p < pixels) ? x[c * pixels + p] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int c = 0; c < BK; ++c) {
            const float w0 = tile_w[c][ty];
            const float w1 = tile_w[c][ty + TY];
            const float x0 = tile_x[c][tx];
            const float x1 = tile_x[c][tx + TX];
            acc[0][0] += w0 * x0;
            acc[0][1] += w0 * x1;
            acc[1][0] += w1 * x0;
            acc[1][1] += w1 * x1;
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + ty + i * TY;
            const int p = p0 + tx + j * TX;
            if (row < rows && p < pixels) {
                cols[static_cast<long long>(row) * pixels + p] = acc[i][j];
            }
        }
    }
}

__global__ void gather_epilogue(const float* __restrict__ cols, const float* __restrict__ bias,
                                float* __restrict__ y, int H, int W, int HO, int WO, int outputs,
                                float add_value, float scale) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= outputs) {
        return;
    }
    const int wo = i % WO;
    const int ho = i / WO % HO;
    const int co = i / (WO * HO);

    float sum = bias[co];
    // Even places take tap 1, odd ones taps 0 and 2.
    for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
        const int h = (ho + 1 - kh) / 2;
        if (h >= H) {
            continue;
        }
        for (int kw = (wo + 1) % 2; kw < K; kw += 2) {
            const int w = (wo + 1 - kw) / 2;
            if (w < W) {
                const long long row = co * TAPS + kh * K + kw;
                sum += cols[(row * H + h) * W + w];
            }
        }
    }
    const float v = mish(sum) + add_value;
    y[i] = fminf(fmaxf(v, -1.0f), 1.0f) * scale;
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO, float add_value, float scale) {
    const int pixels = H * W;
    const int rows = CO * TAPS;
    const int outputs = CO * HO * WO;
    float* cols = scratch<float>(static_cast<long long>(rows) * pixels);
    dim3 block(TX, TY);
    dim3 grid((pixels + BN - 1) / BN, (rows + BM - 1) / BM);
    for (int n = 0; n < B; ++n) {
        const float* image = x + static_cast<long long>(n) * CI * pixels;
        float* out = y + static_cast<long long>(n) * outputs;
        columns_gemm<<<grid, block>>>(weight, image, cols, CI, rows, pixels);
        gather_epilogue<<<(outputs + THREADS - 1) / THREADS, THREADS>>>(
            cols, bias, out, H, W, HO, WO, outputs, add_value, scale);
    }
}
