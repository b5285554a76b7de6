// y = average pool 4x4x4 of batch norm(transposed conv3x3x3(x) + bias), stride 2, padding 1,
// training mode; two pools of 2 are one of 4.
//
// The norm is the same affine map for a whole channel, so it may come after the pooling,
// applied once per pool instead of 64 times. The convolution is stored because its moments,
// taken over everything and not only over the pools, come first: a block per channel finds
// them by Welford.

#include "moments.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int POOL = 4;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;

__global__ void conv_transpose(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ h, int CI,
                               int CO, int D, int H, int W, int HO, int WO, int positions) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    const int co = blockIdx.y;
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const int volume = D * H * W;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;
    float sum = bias[co];
    // Even places take tap 1, odd ones taps 0 and 2; without output padding all exist.
    for (int kd = (dz + 1) % 2; kd < K; kd += 2) {
        for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
            for (int kw = (wo + 1) % 2; kw < K; kw += 2) {
                const int voxel =
                    ((dz + 1 - kd) / 2 * H + (ho + 1 - kh) / 2) * W + (wo + 1 - kw) / 2;
                const float* tap = weight + co * TAPS + (kd * K + kh) * K + kw;
                for (int ci = 0; ci < CI; ++ci) {
                    sum += image[ci * volume + voxel] * tap[ci * CO * TAPS];
                }
            }
        }
    }
    h[(static_cast<long long>(blockIdx.z) * CO + co) * positions + position] = sum;
}

__global__ void channel_moments(const float* __restrict__ h, float* __restrict__ mean,
                                float* __restrict__ inv_std, int B, int CO, int positions,
                                float eps) {
    __shared__ Moments parts[WARPS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;
    Moments m = {0.0f, 0.0f, 0.0f};
    for (int n = 0; n < B; ++n) {
        const float* values = h + (static_cast<long long>(n) * CO + co) * positions;
        for (int i = tid; i < positions; i += THREADS) {
            const float v = values[i];
            m.count += 1.0f;
            const float delta = v - m.mean;
            m.mean += delta / m.count;
            m.m2 += delta * (v - m.mean);
        }
    }
    m = warp_merge(m);
    if (tid % WARP == 0) {
        parts[tid / WARP] = m;
    }
    __syncthreads();
    if (tid == 0) {
        m = merge(merge(parts[0], parts[1]), merge(parts[2], parts[3]));
        mean[co] = m.mean;
        inv_std[co] = rsqrtf(m.m2 / m.count + eps);
    }
}

__global__ void pool_norm(const float* __restrict__ h, const float* __restrict__ mean,
                          const float* __restrict__ inv_std, const float* __restrict__ gamma,
                          const float* __restrict__ beta, float* __restrict__ y, int CO, int DO,
                          int HO, int WO, int PH, int PW, int pools) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= pools) {
        return;
    }
    const int co = blockIdx.y;
    const int w = pool % PW * POOL;
    const int r = pool / PW % PH * POOL;
    const int d = pool / (PW * PH) * POOL;
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    const float* corner = h + ((plane * DO + d) * HO + r) * WO + w;
    float sum = 0.0f;
    for (int i = 0; i < POOL * POOL; ++i) {
        const float* row = corner + (i / POOL * HO + i % POOL) * WO;
        #pragma unroll
        for (int j = 0; j < POOL; ++j) {
            sum += row[j] - mean[co];
        }
    }
    y[plane * pools + pool] =
        sum / (POOL * POOL * POOL) * inv_std[co] * gamma[co] + beta[co];
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int CI, int CO, int D, int H, int W, int DO,
            int HO, int WO, int PD, int PH, int PW, float eps) {
    const int positions = DO * HO * WO;
    const int pools = PD * PH * PW;
    float* h = scratch<float>(static_cast<long long>(B) * CO * positions);
    float* mean = scratch<float>(CO);
    float* inv_std = scratch<float>(CO);
    dim3 grid((positions + THREADS - 1) / THREADS, CO, B);
    conv_transpose<<<grid, THREADS>>>(x, weight, bias, h, CI, CO, D, H, W, HO, WO, positions);
    channel_moments<<<CO, THREADS>>>(h, mean, inv_std, B, CO, positions, eps);
    dim3 pool_grid((pools + THREADS - 1) / THREADS, CO, B);
    pool_norm<<<pool_grid, THREADS>>>(h, mean, inv_std, gamma, beta, y, CO, DO, HO, WO, PH, PW,
                                      pools);
}
