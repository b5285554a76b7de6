// Depthwise 2D convolution with a 3x3 window: x[B, C, H, W], weight[C, 1, 3, 3],
// y[B, C, H - 2, W - 2].
//
// One block per 8x32 tile of one channel: the 10x34 patch and the nine taps are staged in
// shared memory, every input of the tile is loaded from global memory once.

static constexpr int K = 3;
static constexpr int TILE_W = 32;
static constexpr int TILE_H = 8;
static constexpr int PATCH_W = TILE_W + K - 1;
static constexpr int PATCH_H = TILE_H + K - 1;

__global__ void depthwise_tiled(const float* __restrict__ x, const float* __restrict__ weight,
                                float* __restrict__ y, int C, int H, int W, int HO, int WO) {
    __shared__ float patch[PATCH_H][PATCH_W];
    __shared__ float taps[K * K];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col0 = blockIdx.x * TILE_W;
    const int row0 = blockIdx.y * TILE_H;
    const float* plane = x + static_cast<long long>(blockIdx.z) * H * W;

    for (int i = ty; i < PATCH_H; i += TILE_H) {
        for (int j = tx; j < PATCH_W; j += TILE_W) {
            const int h = row0 + i;
            const int w = col0 + j;
            patch[i][j] = (h < H && w < W) ? plane[h * W + w] : 0.0f;
        }
    }
    if (ty == 0 && tx < K * K) {
        taps[tx] = weight[blockIdx.z % C * (K * K) + tx];
    }
    __syncthreads();

    const int ho = row0 + ty;
    const int wo = col0 + tx;
    if (ho < HO && wo < WO) {
        float sum = 0.0f;
        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                sum += patch[ty + kh][tx + kw] * taps[kh * K + kw];
            }
        }
        y[(static_cast<long long>(blockIdx.z) * HO + ho) * WO + wo] = sum;
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int C, int H, int W, int HO, int WO) {
    dim3 block(TILE_W, TILE_H);
    dim3 grid((WO + TILE_W - 1) / TILE_W, (HO + TILE_H - 1) / TILE_H, B * C);
    depthwise_tiled<<<grid, block>>>(x, weight, y, C, H, W, HO, WO);
}
