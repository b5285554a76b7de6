// y = tanh(tanh(min over channels of conv3x3(x) + bias)), no padding.
//
// A block stages the patch of its 8x8 outputs with all input channels. A thread then goes
// through the output channels, makes each in full and keeps the smallest: no output
// channel is ever stored. The filters are the same for all threads, so their loads are
// broadcasts.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int TILE = 8;
static constexpr int PATCH = TILE + K - 1;
static constexpr int AREA = PATCH * PATCH;
static constexpr int THREADS = TILE * TILE;

__global__ void conv_min_tanh(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int CI,
                              int CO, int H, int W, int HO, int WO) {
    extern __shared__ float patch[];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col0 = blockIdx.x * TILE;
    const int row0 = blockIdx.y * TILE;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;
    for (int i = ty * TILE + tx; i < CI * AREA; i += THREADS) {
        const int ci = i / AREA;
        const int h = row0 + i / PATCH % PATCH;
        const int w = col0 + i % PATCH;
        patch[i] = (h < H && w < W) ? image[(ci * H + h) * W + w] : 0.0f;
    }
    __syncthreads();

    const int ho = row0 + ty;
    const int wo = col0 + tx;
    if (ho >= HO || wo >= WO) {
        return;
    }
    float least = INFINITY;
    for (int co = 0; co < CO; ++co) {
        float sum = bias[co];
        for (int ci = 0; ci < CI; ++ci) {
            const float* in = patch + ci * AREA + ty * PATCH + tx;
            const float* filter = weight + (co * CI + ci) * TAPS;
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                sum += in[tap / K * PATCH + tap % K] * filter[tap];
            }
        }
        least = fminf(least, sum);
    }
    y[(static_cast<long long>(blockIdx.z) * HO + ho) * WO + wo] = tanhf(tanhf(least));
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    dim3 block(TILE, TILE);
    dim3 grid((WO + TILE - 1) / TILE, (HO + TILE - 1) / TILE, B);
    const int shared = CI * AREA * sizeof(float);
    conv_min_tanh<<<grid, block, shared>>>(x, weight, bias, y, CI, CO, H, W, HO, WO);
}
