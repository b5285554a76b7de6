// y = gelu(leaky_relu((conv3x3(x) + bias) * multiplier)) by im2col and GEMM.
//
// im2col writes, for every channel and tap, the image as the tap sees it: a matrix of
// CI * 9 rows and one column per output. The convolution is then a plain product with the
// weight as [CO, CI * 9], and the epilogue is applied before the store.

#include "gelu.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int BM = 16;
static constexpr int BN = 32;
static constexpr int BK = 24;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr float SLOPE = 0.01f;

__global__ void im2col(const float* __restrict__ image, float* __restrict__ cols, int H, int W,
                       int WO, int pixels) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= pixels) {
        return;
    }
    const int ci = blockIdx.y;
    const float* corner = image + static_cast<long long>(ci) * H * W + p / WO * W + p % WO;
    float* column = cols + static_cast<long long>(ci) * TAPS * pixels + p;
    #pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
        column[static_cast<long long>(tap) * pixels] = corner[tap / K * W + tap % K];
    }
}

__device__ __forceinline__ float epilogue(float h, float multiplier) {
    h *= multiplier;
    h = h > 0.0f ? h : h * SLOPE;
    return gelu(h);
}

__global__ void gemm_epilogue(const float* __restrict__ weight, const float* __restrict__ cols,
                              const float* __restrict__ bias,
                              const float* __restrict__ multiplier, float* __restrict__ y,
                              int CO, int terms, int pixels) {
    __shared__ float tile_w[BM][BK + 1];
    __shared__ float tile_c[BK][BN];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int co0 = blockIdx.y * BM;
    const int p0 = blockIdx.x * BN;

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int k0 = 0; k0 < terms; k0 += BK) {
        #pragma unroll
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int co = co0 + i / BK;
            const int k = k0 + i % BK;
            tile_w[i / BK][i % BK] = (co < CO && k < terms) ? weight[co * terms + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int k = k0 + i / BN;
            const int p = p0 + i % BN;
            tile_c[i / BN][i % BN] =
                (k < terms && p < pixels) ? cols[static_cast<long long>(k) * pixels + p] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float w0 = tile_w[ty][k];
            const float w1 = tile_w[ty + TY][k];
            const float c0 = tile_c[k][tx];
            const float c1 = tile_c[k][tx + TX];
            acc[0][0] += w0 * c0;
            acc[0][1] += w0 * c1;
            acc[1][0] += w1 * c0;
            acc[1][1] += w1 * c1;
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int co = co0 + ty + i * TY;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int p = p0 + tx + j * TX;
            if (co < CO && p < pixels) {
                y[static_cast<long long>(co) * pixels + p] =
                    epilogue(acc[i][j] + bias[co], multiplier[co]);
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* multiplier,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int pixels = HO * WO;
    const int terms = CI * TAPS;
    float* cols = scratch<float>(static_cast<long long>(terms) * pixels);
    dim3 col_grid((pixels + THREADS - 1) / THREADS, CI);
    dim3 block(TX, TY);
    dim3 grid((pixels + BN - 1) / BN, (CO + BM - 1) / BM);
    for (int n = 0; n < B; ++n) {
        const float* image = x + static_cast<long long>(n) * CI * H * W;
        float* out = y + static_cast<long long>(n) * CO * pixels;
        im2col<<<col_grid, THREADS>>>(image, cols, H, W, WO, pixels);
        gemm_epilogue<<<grid, block>>>(weight, cols, bias, multiplier, out, CO, terms, pixels);
    }
}
