// y = scaling * swish(x * weight^T + bias) in one kernel.
//
// K is far longer than the tile is wide, so the warps of a block make the same 8x4 tile,
// a lane per output, each from its own slices of K, and add their tiles in shared memory at
// the end. A warp stages and reads only its own part of shared memory.

static constexpr int BM = 8;
static constexpr int BN = 4;
static constexpr int WARP = 32;
static constexpr int WARPS = 4;
static constexpr int SLICE = 32;
static constexpr int STEP = WARPS * SLICE;

__global__ void gemm_sliced_k(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int B, int K,
                              int N, float scaling_factor) {
    __shared__ float tile_x[WARPS][BM][SLICE + 1];
    __shared__ float tile_w[WARPS][BN][SLICE + 1];
    __shared__ float sums[WARPS][WARP];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;
    const int c = lane % BN;
    const int r = lane / BN;

    float sum = 0.0f;
    for (int k0 = warp * SLICE; k0 < K; k0 += STEP) {
        const int k = k0 + lane;
        #pragma unroll
        for (int i = 0; i < BM; ++i) {
            tile_x[warp][i][lane] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < BN; ++i) {
            tile_w[warp][i][lane] = (col0 + i < N && k < K) ? w_tile[i * K + k] : 0.0f;
        }
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < SLICE; ++i) {
            sum += tile_x[warp][r][i] * tile_w[warp][c][i];
        }
        __syncwarp();
    }
    sums[warp][lane] = sum;
    __syncthreads();

    const int row = row0 + r;
    const int col = col0 + c;
    if (warp == 0 && row < B && col < N) {
        float h = bias[col];
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            h += sums[w][lane];
        }
        y[static_cast<long long>(row) * N + col] = h / (1.0f + expf(-h)) * scaling_factor;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scaling_factor) {
    dim3 block(WARP, WARPS);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_sliced_k<<<grid, block>>>(x, weight, bias, y, B, K, N, scaling_factor);
}
