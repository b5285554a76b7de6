// y = max pool 2x2x2 of leaky_relu(leaky_relu(transposed conv3x3x3(x) + bias) * multiplier),
// stride 2, padding 1, output padding 1.
//
// The eight convolution results under a pool are exactly those that begin at one input
// voxel, so a thread makes the pool from that voxel and its seven neighbours, for two
// output channels, and the convolution at full resolution never exists.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 2;
static constexpr float SLOPE = 0.2f;

__device__ __forceinline__ float leaky(float v) {
    return v > 0.0f ? v : v * SLOPE;
}

__global__ void conv_leaky_pool(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias,
                                const float* __restrict__ multiplier, float* __restrict__ y,
                                int CI, int CO, int D, int H, int W) {
    const int volume = D * H * W;
    const int voxel = blockIdx.x * THREADS + threadIdx.x;
    if (voxel >= volume) {
        return;
    }
    const int co0 = blockIdx.y * CO_TILE;
    // A second channel that does not exist repeats the first and is not stored.
    const int co1 = min(co0 + 1, CO - 1);
    const int w = voxel % W;
    const int h = voxel / W % H;
    const int d = voxel / (W * H);
    const float* in = x + static_cast<long long>(blockIdx.z) * CI * volume + voxel;

    float acc[CO_TILE][8] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* t0 = weight + (ci * CO + co0) * TAPS;
        const float* t1 = weight + (ci * CO + co1) * TAPS;
        #pragma unroll
        for (int n = 0; n < 8; ++n) {
            const int nd = n / 4;
            const int nh = n / 2 % 2;
            const int nw = n % 2;
            const bool exists = d + nd < D && h + nh < H && w + nw < W;
            const float v = exists ? in[(nd * H + nh) * W + nw] : 0.0f;
            #pragma unroll
            for (int q = 0; q < 8; ++q) {
                // Tap along an axis: 1 for an even output, 2 or 0 for an odd one.
                const int kd = q / 4 + 1 - 2 * nd;
                const int kh = q / 2 % 2 + 1 - 2 * nh;
                const int kw = q % 2 + 1 - 2 * nw;
                if (kd >= 0 && kh >= 0 && kw >= 0) {
                    const int tap = (kd * K + kh) * K + kw;
                    acc[0][q] += v * t0[tap];
                    acc[1][q] += v * t1[tap];
                }
            }
        }
        in += volume;
    }
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        const int co = co0 + o;
        if (co < CO) {
            float best = -INFINITY;
            #pragma unroll
            for (int q = 0; q < 8; ++q) {
                // The multiplier may be negative: it comes before the maximum.
                best = fmaxf(best, leaky(leaky(acc[o][q] + bias[co]) * multiplier[co]));
            }
            y[(static_cast<long long>(blockIdx.z) * CO + co) * volume + voxel] = best;
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* multiplier,
            float* y, int B, int CI, int CO, int D, int H, int W) {
    dim3 grid((D * H * W + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_leaky_pool<<<grid, THREADS>>>(x, weight, bias, multiplier, y, CI, CO, D, H, W);
}
