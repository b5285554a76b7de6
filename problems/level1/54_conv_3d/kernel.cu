// 3D convolution with a 3x3x3 window, stride 1, no padding: x[B, CI, D, H, W],
// weight[CO, CI, 3, 3, 3], y[B, CO, D - 2, H - 2, W - 2].
//
// A block makes 4x4x8 outputs of four channels. Per input channel it stages the 6x6x10
// input patch and the weights; a thread reuses every input value for its four channels.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int TILE_D = 4;
static constexpr int TILE_H = 4;
static constexpr int TILE_W = 8;
static constexpr int THREADS = TILE_D * TILE_H * TILE_W;
static constexpr int PATCH_D = TILE_D + K - 1;
static constexpr int PATCH_H = TILE_H + K - 1;
static constexpr int PATCH_W = TILE_W + K - 1;
static constexpr int OUT_PER_THREAD = 4;

__global__ void conv3d_patch(const float* __restrict__ x, const float* __restrict__ weight,
                             float* __restrict__ y, int CI, int CO, int D, int H, int W,
                             int DO, int HO, int WO, int tiles_h, int tiles_w) {
    __shared__ float patch[PATCH_D][PATCH_H][PATCH_W];
    __shared__ float taps[TAPS][OUT_PER_THREAD];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tz = threadIdx.z;
    const int tid = (tz * TILE_H + ty) * TILE_W + tx;
    const int w0 = blockIdx.x % tiles_w * TILE_W;
    const int h0 = blockIdx.x / tiles_w % tiles_h * TILE_H;
    const int d0 = blockIdx.x / (tiles_w * tiles_h) * TILE_D;
    const int co0 = blockIdx.y * OUT_PER_THREAD;

    float acc[OUT_PER_THREAD] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (int ci = 0; ci < CI; ++ci) {
        const float* volume = x + (static_cast<long long>(blockIdx.z) * CI + ci) * D * H * W;
        for (int i = tid; i < PATCH_D * PATCH_H * PATCH_W; i += THREADS) {
            const int pw = i % PATCH_W;
            const int ph = i / PATCH_W % PATCH_H;
            const int pd = i / (PATCH_W * PATCH_H);
            const int w = w0 + pw;
            const int h = h0 + ph;
            const int d = d0 + pd;
            // Beyond the edge only outputs are computed that nobody stores.
            const bool exists = d < D && h < H && w < W;
            patch[pd][ph][pw] = exists ? volume[(d * H + h) * W + w] : 0.0f;
        }
        if (tid < TAPS * OUT_PER_THREAD) {
            const int co = co0 + tid % OUT_PER_THREAD;
            const int tap = tid / OUT_PER_THREAD;
            taps[tap][tid % OUT_PER_THREAD] =
                co < CO ? weight[(co * CI + ci) * TAPS + tap] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const float v = patch[tz + tap / (K * K)][ty + tap / K % K][tx + tap % K];
            #pragma unroll
            for (int o = 0; o < OUT_PER_THREAD; ++o) {
                acc[o] += v * taps[tap][o];
            }
        }
        __syncthreads();
    }

    const int out_d = d0 + tz;
    const int out_h = h0 + ty;
    const int out_w = w0 + tx;
    if (out_d < DO && out_h < HO && out_w < WO) {
        #pragma unroll
        for (int o = 0; o < OUT_PER_THREAD; ++o) {
            if (co0 + o < CO) {
                const long long volume = static_cast<long long>(blockIdx.z) * CO + co0 + o;
                y[((volume * DO + out_d) * HO + out_h) * WO + out_w] = acc[o];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    const int tiles_w = (WO + TILE_W - 1) / TILE_W;
    const int tiles_h = (HO + TILE_H - 1) / TILE_H;
    const int tiles_d = (DO + TILE_D - 1) / TILE_D;
    dim3 block(TILE_W, TILE_H, TILE_D);
    dim3 grid(tiles_w * tiles_h * tiles_d, (CO + OUT_PER_THREAD - 1) / OUT_PER_THREAD, B);
    conv3d_patch<<<grid, block>>>(x, weight, y, CI, CO, D, H, W, DO, HO, WO, tiles_h, tiles_w);
}
