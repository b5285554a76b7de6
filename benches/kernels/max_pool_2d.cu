// Max pooling of x[B, C, H, W] with a 4x4 window, stride 1, padding 1, dilation 1.
//
// With stride 1 neighbouring windows overlap almost wholly, so a block stages its
// outputs' common input patch in shared memory once.

static constexpr int KERNEL = 4;
static constexpr int PAD = 1;
static constexpr int TILE_W = 32;
static constexpr int TILE_H = 8;
static constexpr int PATCH_W = TILE_W + KERNEL - 1;
static constexpr int PATCH_H = TILE_H + KERNEL - 1;

__global__ void max_pool_tiled(const float* __restrict__ x, float* __restrict__ y,
                               int H, int W, int HO, int WO) {
    __shared__ float patch[PATCH_H][PATCH_W];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col0 = blockIdx.x * TILE_W;
    const int row0 = blockIdx.y * TILE_H;
    const float* in = x + static_cast<long long>(blockIdx.z) * H * W;

    for (int i = ty; i < PATCH_H; i += TILE_H) {
        for (int j = tx; j < PATCH_W; j += TILE_W) {
            const int h = row0 + i - PAD;
            const int w = col0 + j - PAD;
            // The padding never wins: it is -inf, not zero.
            float v = -INFINITY;
            if (h >= 0 && h < H && w >= 0 && w < W) {
                v = in[h * W + w];
            }
            patch[i][j] = v;
        }
    }
    __syncthreads();

    const int ho = row0 + ty;
    const int wo = col0 + tx;
    if (ho < HO && wo < WO) {
        float best = -INFINITY;
        #pragma unroll
        for (int i = 0; i < KERNEL; ++i) {
            #pragma unroll
            for (int j = 0; j < KERNEL; ++j) {
                const float v = patch[ty + i][tx + j];
                // A NaN in the window is the result, as in PyTorch.
                if (v > best || v != v) {
                    best = v;
                }
            }
        }
        y[(static_cast<long long>(blockIdx.z) * HO + ho) * WO + wo] = best;
    }
}
