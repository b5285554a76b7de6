// y = group norm(relu(transposed conv3x3x3(x))), stride 1, no padding.
//
// A warp makes up to 30 neighbouring outputs of a row. Each lane loads the input at its own
// place and gets the two to its left from its neighbours by shuffle: one load for three taps.
// The first two lanes only lend. A block per image and group normalises what is in y.

#include "block_sum.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int WARPS = 4;
static constexpr int OUT = WARP - (K - 1);
static constexpr int THREADS = WARP * WARPS;

__global__ void conv_transpose_relu(const float* __restrict__ x, const float* __restrict__ weight,
                                    float* __restrict__ y, int CI, int CO, int D, int H, int W,
                                    int DO, int HO, int WO) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * WARPS + threadIdx.y;
    const int runs = (WO + OUT - 1) / OUT;
    if (row >= DO * HO * runs) {
        return;
    }
    const int run = row % runs;
    const int ho = row / runs % HO;
    const int dz = row / (runs * HO);
    const int co = blockIdx.y;
    // Lane 2 stands for the first output of the run.
    const int wo = run * OUT + lane - (K - 1);
    const bool loads = wo >= 0 && wo < W;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * D * H * W;

    float sum = 0.0f;
    for (int ci = 0; ci < CI; ++ci) {
        const float* taps = weight + (ci * CO + co) * TAPS;
        for (int kd = 0; kd < K; ++kd) {
            const int d = dz - kd;
            if (d < 0 || d >= D) {
                continue;
            }
            for (int kh = 0; kh < K; ++kh) {
                const int h = ho - kh;
                if (h < 0 || h >= H) {
                    continue;
                }
                const float own = loads ? image[(d * H + h) * W + wo] : 0.0f;
                const float* t = taps + (kd * K + kh) * K;
                sum += own * t[0];
                sum += __shfl_up_sync(FULL_MASK, own, 1) * t[1];
                sum += __shfl_up_sync(FULL_MASK, own, 2) * t[2];
            }
        }
        image += D * H * W;
    }
    if (lane >= K - 1 && wo < WO) {
        const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
        y[((plane * DO + dz) * HO + ho) * WO + wo] = fmaxf(sum, 0.0f);
    }
}

__global__ void norm_group(float* y, const float* __restrict__ gamma,
                           const float* __restrict__ beta, int G, int CG, int positions,
                           float eps) {
    __shared__ float mean_parts[WARPS];
    __shared__ float variance_parts[WARPS];
    const int size = CG * positions;
    float* values = y + static_cast<long long>(blockIdx.x) * size;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        sum += values[i];
    }
    const float mean = block_sum<WARPS>(sum, mean_parts) / size;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const float d = values[i] - mean;
        squares += d * d;
    }
    const float inv_std = rsqrtf(block_sum<WARPS>(squares, variance_parts) / size + eps);
    for (int i = threadIdx.x; i < size; i += THREADS) {
        const int co = blockIdx.x % G * CG + i / positions;
        values[i] = (values[i] - mean) * inv_std * gamma[co] + beta[co];
    }
}

void launch(const float* x, const float* weight, const float* gamma, const float* beta, float* y,
            int B, int CI, int G, int CG, int CO, int D, int H, int W, int DO, int HO, int WO,
            float eps) {
    const int rows = DO * HO * ((WO + OUT - 1) / OUT);
    dim3 block(WARP, WARPS);
    dim3 grid((rows + WARPS - 1) / WARPS, CO, B);
    conv_transpose_relu<<<grid, block>>>(x, weight, y, CI, CO, D, H, W, DO, HO, WO);
    norm_group<<<B * G, THREADS>>>(y, gamma, beta, G, CG, DO * HO * WO, eps);
}
