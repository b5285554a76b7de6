// y = tanh(mish(conv3x3x3(x) + bias)), no padding.
//
// A thread owns a column of outputs and marches through the depth of the input. The nine
// values of a slice and channel are loaded once and used by the three output slices that
// they belong to, for two output channels: nine loads for 54 multiply-adds.

static constexpr int K = 3;
static constexpr int SLICE = K * K;
static constexpr int TAPS = K * SLICE;
static constexpr int THREADS = 32;
static constexpr int CO_TILE = 2;

__device__ __forceinline__ float mish_tanh(float v) {
    const float softplus = fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v)));
    return tanhf(v * tanhf(softplus));
}

__global__ void conv3d_march(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ y, int CI,
                             int CO, int D, int H, int W, int DO, int HO, int WO) {
    extern __shared__ float filters[];
    const int co0 = blockIdx.y * CO_TILE;
    const int terms = CI * TAPS;
    for (int i = threadIdx.x; i < CO_TILE * terms; i += THREADS) {
        filters[i] = co0 + i / terms < CO ? weight[co0 * terms + i] : 0.0f;
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    const int area = HO * WO;
    if (position >= area) {
        return;
    }
    const float* corner = x + static_cast<long long>(blockIdx.z) * CI * D * H * W +
                          position / WO * W + position % WO;

    // acc[o][j] belongs to output slice d - j, where d is the input slice at hand.
    float acc[CO_TILE][K] = {};
    for (int d = 0; d < D; ++d) {
        for (int ci = 0; ci < CI; ++ci) {
            const float* in = corner + (static_cast<long long>(ci) * D + d) * H * W;
            const float* taps = filters + ci * TAPS;
            #pragma unroll
            for (int tap = 0; tap < SLICE; ++tap) {
                const float v = in[tap / K * W + tap % K];
                #pragma unroll
                for (int o = 0; o < CO_TILE; ++o) {
                    #pragma unroll
                    for (int kd = 0; kd < K; ++kd) {
                        acc[o][kd] += v * taps[o * terms + kd * SLICE + tap];
                    }
                }
            }
        }
        const int finished = d - (K - 1);
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            if (finished >= 0 && co0 + o < CO) {
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
                y[(plane * DO + finished) * area + position] =
                    mish_tanh(acc[o][K - 1] + bias[co0 + o]);
            }
            acc[o][2] = acc[o][1];
            acc[o][1] = acc[o][0];
            acc[o][0] = 0.0f;
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int DO, int HO, int WO) {
    dim3 grid((HO * WO + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    const int shared = CO_TILE * CI * TAPS * sizeof(float);
    conv3d_march<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, D, H, W, DO, HO, WO);
}
