// 3D convolution with a 3x5x7 window: x[B, CI, D, H, W], weight[CO, CI, 3, 5, 7],
// y[B, CO, D - 2, H - 4, W - 6].
//
// A block marches through the depth of an 8x8 column of outputs. An input slice reaches
// three output slices, so every thread keeps three sums in flight: each slice is staged
// in shared memory once and used three times.

static constexpr int KD = 3;
static constexpr int KH = 5;
static constexpr int KW = 7;
static constexpr int SLICE_TAPS = KH * KW;
static constexpr int TAPS = KD * SLICE_TAPS;
static constexpr int TILE = 8;
static constexpr int PATCH_H = TILE + KH - 1;
static constexpr int PATCH_W = TILE + KW - 1;
static constexpr int THREADS = TILE * TILE;

__global__ void conv3d_marching(const float* __restrict__ x, const float* __restrict__ weight,
                                float* __restrict__ y, int CI, int CO, int D, int H, int W,
                                int DO, int HO, int WO, int tiles_w) {
    extern __shared__ float filter[];
    __shared__ float patch[PATCH_H][PATCH_W];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TILE + tx;
    const int col0 = blockIdx.x % tiles_w * TILE;
    const int row0 = blockIdx.x / tiles_w * TILE;
    const int co = blockIdx.y;
    const int ho = row0 + ty;
    const int wo = col0 + tx;
    const long long plane = static_cast<long long>(HO) * WO;
    float* out = y + (static_cast<long long>(blockIdx.z) * CO + co) * DO * plane;

    // Published by the first barrier of the march.
    for (int i = tid; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[co * CI * TAPS + i];
    }

    // acc[j] belongs to output slice d - j, where d is the input slice at hand.
    float acc[KD] = {0.0f, 0.0f, 0.0f};

    for (int d = 0; d < D; ++d) {
        for (int ci = 0; ci < CI; ++ci) {
            const long long slice = (static_cast<long long>(blockIdx.z) * CI + ci) * D + d;
            for (int i = tid; i < PATCH_H * PATCH_W; i += THREADS) {
                const int h = row0 + i / PATCH_W;
                const int w = col0 + i % PATCH_W;
                patch[i / PATCH_W][i % PATCH_W] =
                    (h < H && w < W) ? x[(slice * H + h) * W + w] : 0.0f;
            }
            __syncthreads();

            const float* taps = filter + ci * TAPS;
            #pragma unroll
            for (int kh = 0; kh < KH; ++kh) {
                #pragma unroll
                for (int kw = 0; kw < KW; ++kw) {
                    const float v = patch[ty + kh][tx + kw];
                    const int tap = kh * KW + kw;
                    #pragma unroll
                    for (int kd = 0; kd < KD; ++kd) {
                        acc[kd] += v * taps[kd * SLICE_TAPS + tap];
                    }
                }
            }
            __syncthreads();
        }

        // The oldest slice has all its terms; the others move up.
        const int finished = d - (KD - 1);
        if (finished >= 0 && ho < HO && wo < WO) {
            out[finished * plane + ho * WO + wo] = acc[KD - 1];
        }
        #pragma unroll
        for (int kd = KD - 1; kd > 0; --kd) {
            acc[kd] = acc[kd - 1];
        }
        acc[0] = 0.0f;
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    const int tiles_w = (WO + TILE - 1) / TILE;
    const int tiles_h = (HO + TILE - 1) / TILE;
    dim3 block(TILE, TILE);
    dim3 grid(tiles_w * tiles_h, CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv3d_marching<<<grid, block, shared>>>(x, weight, y, CI, CO, D, H, W, DO, HO, WO, tiles_w);
}
