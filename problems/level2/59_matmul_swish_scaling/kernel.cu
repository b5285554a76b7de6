// y = scaling * swish(x * weight^T + bias) in one kernel.
//
// K is far longer than the tile is wide, so the warps of a block make the same 8x8 tile,
// each from its own slices of K, and add their tiles in shared memory at the end. A lane
// keeps two sums. A warp stages and reads only its own part of shared memory.

static constexpr int TILE = 8;
static constexpr int WARP = 32;
static constexpr int WARPS = 4;
static constexpr int SLICE = 32;
static constexpr int STEP = WARPS * SLICE;

__global__ void gemm_sliced_k(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int B, int K,
                              int N, float scaling_factor) {
    __shared__ float tile_x[WARPS][TILE][SLICE + 1];
    __shared__ float tile_w[WARPS][TILE][SLICE + 1];
    __shared__ float sums[WARPS][TILE][TILE];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;
    const int c = lane % TILE;
    const int r = lane / TILE;

    float upper = 0.0f;
    float lower = 0.0f;
    for (int k0 = warp * SLICE; k0 < K; k0 += STEP) {
        const int k = k0 + lane;
        #pragma unroll
        for (int i = 0; i < TILE; ++i) {
            const bool in_x = row0 + i < B && k < K;
            const bool in_w = col0 + i < N && k < K;
            tile_x[warp][i][lane] = in_x ? x[static_cast<long long>(row0 + i) * K + k] : 0.0f;
            tile_w[warp][i][lane] = in_w ? weight[static_cast<long long>(col0 + i) * K + k] : 0.0f;
        }
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < SLICE; ++i) {
            const float w = tile_w[warp][c][i];
            upper += tile_x[warp][r][i] * w;
            lower += tile_x[warp][r + TILE / 2][i] * w;
        }
        __syncwarp();
    }
    sums[warp][r][c] = upper;
    sums[warp][r + TILE / 2][c] = lower;
    __syncthreads();

    const int tid = warp * WARP + lane;
    if (tid < TILE * TILE) {
        const int row = row0 + tid / TILE;
        const int col = col0 + tid % TILE;
        if (row < B && col < N) {
            float h = bias[col];
            #pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                h += sums[w][tid / TILE][tid % TILE];
            }
            y[static_cast<long long>(row) * N + col] = h / (1.0f + expf(-h)) * scaling_factor;
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scaling_factor) {
    dim3 block(WARP, WARPS);
    dim3 grid((N + TILE - 1) / TILE, (B + TILE - 1) / TILE);
    gemm_sliced_k<<<grid, block>>>(x, weight, bias, y, B, K, N, scaling_factor);
}
