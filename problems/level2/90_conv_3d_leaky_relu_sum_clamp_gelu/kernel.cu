// y = gelu(clamp(leaky_relu(conv3x3x3(x) + bias) + sum_tensor, -1, 1)), no padding.
//
// A block makes a tile of 4x4x8 outputs, 128 threads, from a 6x6x10 patch in shared memory;
// each thread makes two output channels from every value that it reads there.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int TILE_D = 4;
static constexpr int TILE_H = 4;
static constexpr int TILE_W = 8;
static constexpr int PATCH_D = TILE_D + K - 1;
static constexpr int PATCH_H = TILE_H + K - 1;
static constexpr int PATCH_W = TILE_W + K - 1;
static constexpr int PATCH = PATCH_D * PATCH_H * PATCH_W;
static constexpr int THREADS = TILE_D * TILE_H * TILE_W;
static constexpr int CO_TILE = 2;
static constexpr float SLOPE = 0.2f;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

__global__ void conv3d_tiled(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias,
                             const float* __restrict__ sum_tensor, float* __restrict__ y, int CI,
                             int CO, int D, int H, int W, int DO, int HO, int WO, int tiles_h,
                             int tiles_w) {
    __shared__ float patch[PATCH_D][PATCH_H][PATCH_W];
    __shared__ float taps[CO_TILE][TAPS];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tz = threadIdx.z;
    const int tid = (tz * TILE_H + ty) * TILE_W + tx;
    const int w0 = blockIdx.x % tiles_w * TILE_W;
    const int h0 = blockIdx.x / tiles_w % tiles_h * TILE_H;
    const int d0 = blockIdx.x / (tiles_w * tiles_h) * TILE_D;
    const int co0 = blockIdx.y * CO_TILE;

    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* volume = x + (static_cast<long long>(blockIdx.z) * CI + ci) * D * H * W;
        for (int i = tid; i < PATCH; i += THREADS) {
            const int j = i % PATCH_W;
            const int r = i / PATCH_W % PATCH_H;
            const int s = i / (PATCH_W * PATCH_H);
            const bool exists = d0 + s < D && h0 + r < H && w0 + j < W;
            patch[s][r][j] = exists ? volume[((d0 + s) * H + h0 + r) * W + w0 + j] : 0.0f;
        }
        if (tid < CO_TILE * TAPS) {
            const int co = co0 + tid / TAPS;
            taps[tid / TAPS][tid % TAPS] =
                co < CO ? weight[(co * CI + ci) * TAPS + tid % TAPS] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = patch[tz + tap / (K * K)][ty + tap / K % K][tx + tap % K];
            #pragma unroll
            for (int o = 0; o < CO_TILE; ++o) {
                acc[o] += v * taps[o][tap];
            }
        }
        __syncthreads();
    }

    const int dz = d0 + tz;
    const int ho = h0 + ty;
    const int wo = w0 + tx;
    if (dz < DO && ho < HO && wo < WO) {
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            const int co = co0 + o;
            if (co < CO) {
                float h = acc[o] + bias[co];
                h = h > 0.0f ? h : h * SLOPE;
                h = fminf(fmaxf(h + sum_tensor[co], -1.0f), 1.0f);
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
                y[((plane * DO + dz) * HO + ho) * WO + wo] =
                    0.5f * h * (1.0f + erff(h * INV_SQRT_2));
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* sum_tensor,
            float* y, int B, int CI, int CO, int D, int H, int W, int DO, int HO, int WO) {
    const int tiles_w = (WO + TILE_W - 1) / TILE_W;
    const int tiles_h = (HO + TILE_H - 1) / TILE_H;
    const int tiles_d = (DO + TILE_D - 1) / TILE_D;
    dim3 block(TILE_W, TILE_H, TILE_D);
    dim3 grid(tiles_w * tiles_h * tiles_d, (CO + CO_TILE - 1) / CO_TILE, B);
    conv3d_tiled<<<grid, block>>>(x, weight, bias, sum_tensor, y, CI, CO, D, H, W, DO, HO, WO,
                                  tiles_h, tiles_w);
}
