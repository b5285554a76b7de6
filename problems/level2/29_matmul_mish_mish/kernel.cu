// y = mish(mish(x * weight^T + bias)) in one kernel.
//
// Tiles are double buffered: while the sums of one step are made, the next step's values
// are on their way into registers, and they are stored to the other buffer afterwards.
// Each step then costs one barrier, and its loads are hidden behind arithmetic.

#include "mish.cuh"

static constexpr int BM = 8;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;
static constexpr int X_PER_THREAD = BM * BK / THREADS;
static constexpr int W_PER_THREAD = BN * BK / THREADS;

__global__ void gemm_mish_mish(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int B,
                               int K, int N) {
    __shared__ float tile_x[2][BM][BK + 1];
    __shared__ float tile_w[2][BN][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float next_x[X_PER_THREAD];
    float next_w[W_PER_THREAD];
    auto fetch = [&](int k0) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = 0; i < X_PER_THREAD; ++i) {
            const int r = (tid + i * THREADS) / BK;
            next_x[i] = (row0 + r < B && k < K) ? x_tile[r * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < W_PER_THREAD; ++i) {
            const int r = (tid + i * THREADS) / BK;
            next_w[i] = (col0 + r < N && k < K) ? w_tile[r * K + k] : 0.0f;
        }
    };
    auto store = [&](int buffer) {
        #pragma unroll
        for (int i = 0; i < X_PER_THREAD; ++i) {
            tile_x[buffer][(tid + i * THREADS) / BK][tid % BK] = next_x[i];
        }
        #pragma unroll
        for (int i = 0; i < W_PER_THREAD; ++i) {
            tile_w[buffer][(tid + i * THREADS) / BK][tid % BK] = next_w[i];
        }
    };

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    int now = 0;
    fetch(0);
    store(now);
    __syncthreads();
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) {
            fetch(k0 + BK);
        }
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float a0 = tile_x[now][ty][k];
            const float a1 = tile_x[now][ty + TY][k];
            const float b0 = tile_w[now][tx][k];
            const float b1 = tile_w[now][tx + TX][k];
            acc[0][0] += a0 * b0;
            acc[0][1] += a0 * b1;
            acc[1][0] += a1 * b0;
            acc[1][1] += a1 * b1;
        }
        if (more) {
            store(now ^ 1);
            __syncthreads();
            now ^= 1;
        }
    }

    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + ty + i * TY;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int col = col0 + tx + j * TX;
            if (row < B && col < N) {
                y[static_cast<long long>(row) * N + col] = mish(mish(acc[i][j] + bias[col]));
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(TX, TY);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_mish_mish<<<grid, block>>>(x, weight, bias, y, B, K, N);
}
