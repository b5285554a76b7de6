// y = clamp(tanh(clamp(swish(x * weight^T + bias) / 2))) in one kernel.
//
// Warp tiling: the 16x16 tile of a block is split among two warps, eight rows each, and a
// warp's 32 lanes form a 4x8 grid in it, two rows by two columns a lane. Lanes of a warp
// share the fragments they read, so most shared-memory reads are broadcasts.

static constexpr int BM = 16;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int WARP = 32;
static constexpr int WARPS = 2;
static constexpr int WARP_ROWS = BM / WARPS;
static constexpr int LANES_X = 8;
static constexpr int LANES_Y = WARP / LANES_X;
static constexpr int TM = WARP_ROWS / LANES_Y;
static constexpr int TN = BN / LANES_X;

__device__ __forceinline__ float clamp1(float v) {
    return fminf(fmaxf(v, -1.0f), 1.0f);
}

__device__ __forceinline__ float epilogue(float h) {
    const float swish = h / (1.0f + expf(-h));
    return clamp1(tanhf(clamp1(swish / 2.0f)));
}

__global__ void gemm_warp_tiled(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int B,
                                int K, int N) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const int r0 = warp * WARP_ROWS + lane / LANES_X * TM;
    const int c0 = lane % LANES_X * TN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + lane;
        #pragma unroll
        for (int i = warp; i < BM; i += WARPS) {
            tile_x[i][lane] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
            tile_w[i][lane] = (col0 + i < N && k < K) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a[TM];
            float b[TN];
            #pragma unroll
            for (int m = 0; m < TM; ++m) {
                a[m] = tile_x[r0 + m][i];
            }
            #pragma unroll
            for (int n = 0; n < TN; ++n) {
                b[n] = tile_w[c0 + n][i];
            }
            #pragma unroll
            for (int m = 0; m < TM; ++m) {
                #pragma unroll
                for (int n = 0; n < TN; ++n) {
                    acc[m][n] += a[m] * b[n];
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int m = 0; m < TM; ++m) {
        #pragma unroll
        for (int n = 0; n < TN; ++n) {
            const int row = row0 + r0 + m;
            const int col = col0 + c0 + n;
            if (row < B && col < N) {
                y[static_cast<long long>(row) * N + col] = epilogue(acc[m][n] + bias[col]);
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(WARP, WARPS);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_warp_tiled<<<grid, block>>>(x, weight, bias, y, B, K, N);
}
