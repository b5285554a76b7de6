// y = sigmoid(gelu(leaky_relu(relu(conv3x3x3(x) + conv_bias)))) + bias, no padding.
//
// A thread makes four output channels of one position. The filters are staged with those
// four side by side, so one float4 load from shared memory goes with every load of x.

#include "gelu.cuh"
#include "sigmoid.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int CO_TILE = 4;
static constexpr float SLOPE = 0.01f;

__device__ __forceinline__ float epilogue(float v, float bias) {
    v = fmaxf(v, 0.0f);
    v = v > 0.0f ? v : v * SLOPE;
    v = gelu(v);
    return sigmoid(v) + bias;
}

__global__ void conv3d_chain(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ conv_bias, const float* __restrict__ bias,
                             float* __restrict__ y, int CI, int CO, int D, int H, int W, int DO,
                             int HO, int WO) {
    extern __shared__ float4 filters[];
    float* flat = reinterpret_cast<float*>(filters);

    const int co0 = blockIdx.y * CO_TILE;
    const int terms = CI * TAPS;
    for (int i = threadIdx.x; i < CO_TILE * terms; i += THREADS) {
        const int o = i % CO_TILE;
        const int term = i / CO_TILE;
        flat[i] = co0 + o < CO ? weight[(co0 + o) * terms + term] : 0.0f;
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    const int positions = DO * HO * WO;
    if (position >= positions) {
        return;
    }
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);

    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int ci = 0; ci < CI; ++ci) {
        const long long volume = static_cast<long long>(blockIdx.z) * CI + ci;
        const float* corner = x + ((volume * D + dz) * H + ho) * W + wo;
        #pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const int kd = tap / (K * K);
            const int kh = tap / K % K;
            const float v = corner[(kd * H + kh) * W + tap % K];
            const float4 w = filters[ci * TAPS + tap];
            acc.x += v * w.x;
            acc.y += v * w.y;
            acc.z += v * w.z;
            acc.w += v * w.w;
        }
    }

    const float sums[CO_TILE] = {acc.x, acc.y, acc.z, acc.w};
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        const int co = co0 + o;
        if (co < CO) {
            const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
            y[plane * positions + position] = epilogue(sums[o] + conv_bias[co], bias[co]);
        }
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int D, int H, int W, int DO, int HO, int WO) {
    const int shared = CO_TILE * CI * TAPS * sizeof(float);
    dim3 grid((DO * HO * WO + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv3d_chain<<<grid, THREADS, shared>>>(x, weight, conv_bias, bias, y, CI, CO, D, H, W,
                                            DO, HO, WO);
}
