// 2D convolution with an 11x11 window, stride 4, padding 2 and bias: x[B, CI, H, W],
// weight[CO, CI, 11, 11], y[B, CO, HO, WO].
//
// Implicit GEMM: per sample, y is the product of the weights, [CO, CI * 121], and a matrix
// of input patches, [CI * 121, HO * WO], whose tiles are gathered from x on the way into
// shared memory.

static constexpr int K = 11;
static constexpr int STRIDE = 4;
static constexpr int PAD = 2;
static constexpr int TILE = 32;
static constexpr int TILE_K = 16;
static constexpr int PER_THREAD = 4;
static constexpr int SIDE = TILE / PER_THREAD;
static constexpr int THREADS = SIDE * SIDE;
// Four columns of padding keep rows 16-byte aligned.
static constexpr int PITCH = TILE + 4;

__global__ void conv2d_implicit_gemm(const float* __restrict__ x,
                                     const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ y,
                                     int CI, int CO, int H, int W, int HO, int WO) {
    __shared__ __align__(16) float taps[TILE_K][PITCH];
    __shared__ __align__(16) float patches[TILE_K][PITCH];

    const int tid = threadIdx.x;
    const int tx = tid % SIDE;
    const int ty = tid / SIDE;
    const int co0 = blockIdx.y * TILE;
    const int p0 = blockIdx.x * TILE;
    const int terms = CI * K * K;
    const int positions = HO * WO;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;

    float acc[PER_THREAD][PER_THREAD] = {};

    for (int k0 = 0; k0 < terms; k0 += TILE_K) {
        for (int i = tid; i < TILE * TILE_K; i += THREADS) {
            const int co = co0 + i / TILE_K;
            const int k = k0 + i % TILE_K;
            taps[i % TILE_K][i / TILE_K] =
                (co < CO && k < terms) ? weight[co * terms + k] : 0.0f;
        }
        for (int i = tid; i < TILE_K * TILE; i += THREADS) {
            const int k = k0 + i / TILE;
            const int p = p0 + i % TILE;
            const int h = p / WO * STRIDE - PAD + k / K % K;
            const int w = p % WO * STRIDE - PAD + k % K;
            const bool exists =
                k < terms && p < positions && h >= 0 && h < H && w >= 0 && w < W;
            patches[i / TILE][i % TILE] = exists ? image[(k / (K * K) * H + h) * W + w] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float4 a = *reinterpret_cast<const float4*>(&taps[k][ty * PER_THREAD]);
            const float4 b = *reinterpret_cast<const float4*>(&patches[k][tx * PER_THREAD]);
            const float column[PER_THREAD] = {a.x, a.y, a.z, a.w};
            #pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
                acc[i][0] += column[i] * b.x;
                acc[i][1] += column[i] * b.y;
                acc[i][2] += column[i] * b.z;
                acc[i][3] += column[i] * b.w;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int co = co0 + ty * PER_THREAD + i;
        if (co < CO) {
            const float shift = bias[co];
            float* out = y + (static_cast<long long>(blockIdx.z) * CO + co) * positions;
            #pragma unroll
            for (int j = 0; j < PER_THREAD; ++j) {
                const int p = p0 + tx * PER_THREAD + j;
                if (p < positions) {
                    out[p] = acc[i][j] + shift;
                }
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    dim3 grid((HO * WO + TILE - 1) / TILE, (CO + TILE - 1) / TILE, B);
    conv2d_implicit_gemm<<<grid, THREADS>>>(x, weight, bias, y, CI, CO, H, W, HO, WO);
}
