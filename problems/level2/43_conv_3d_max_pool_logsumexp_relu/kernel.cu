// y = relu(logsumexp over channels of max pool 2x2x2 of conv3x3x3(x) + bias), padding 1.
//
// A thread makes one pooled value of one channel. It goes through the four slices of its
// patch; 16 values of a slice are held in registers and meet the one or two layers of
// results that they belong to. The second kernel reads all channels of a place twice:
// once for the maximum, once for the sum.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int PATCH = 4;
static constexpr int THREADS = 64;

__global__ void conv_pool(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ pooled, int CI,
                          int CO, int D, int H, int W, int PH, int PW, int pools) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= pools) {
        return;
    }
    const int co = blockIdx.y;
    // The padding of 1 puts the patch one before the pool along each axis.
    const int w0 = 2 * (pool % PW) - 1;
    const int h0 = 2 * (pool / PW % PH) - 1;
    const int d0 = 2 * (pool / (PW * PH)) - 1;

    float acc[2][2][2] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* volume = x + (static_cast<long long>(blockIdx.z) * CI + ci) * D * H * W;
        const float* filter = weight + (co * CI + ci) * TAPS;
        #pragma unroll
        for (int s = 0; s < PATCH; ++s) {
            const int d = d0 + s;
            if (d < 0 || d >= D) {
                continue;
            }
            float slice[PATCH][PATCH];
            #pragma unroll
            for (int i = 0; i < PATCH; ++i) {
                #pragma unroll
                for (int j = 0; j < PATCH; ++j) {
                    const int h = h0 + i;
                    const int w = w0 + j;
                    const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                    slice[i][j] = inside ? volume[(d * H + h) * W + w] : 0.0f;
                }
            }
            #pragma unroll
            for (int od = 0; od < 2; ++od) {
                const int kd = s - od;
                if (kd < 0 || kd >= K) {
                    continue;
                }
                #pragma unroll
                for (int tap = 0; tap < K * K; ++tap) {
                    const float v = filter[kd * K * K + tap];
                    #pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        acc[od][q / 2][q % 2] += slice[q / 2 + tap / K][q % 2 + tap % K] * v;
                    }
                }
            }
        }
    }
    float best = -INFINITY;
    #pragma unroll
    for (int q = 0; q < 8; ++q) {
        best = fmaxf(best, acc[q / 4][q / 2 % 2][q % 2]);
    }
    pooled[(static_cast<long long>(blockIdx.z) * CO + co) * pools + pool] = best + bias[co];
}

__global__ void logsumexp_relu(const float* __restrict__ pooled, float* __restrict__ y, int CO,
                               int pools) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= pools) {
        return;
    }
    const float* in = pooled + static_cast<long long>(blockIdx.y) * CO * pools + pool;
    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        top = fmaxf(top, in[static_cast<long long>(co) * pools]);
    }
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        sum += expf(in[static_cast<long long>(co) * pools] - top);
    }
    y[static_cast<long long>(blockIdx.y) * pools + pool] = fmaxf(top + logf(sum), 0.0f);
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int PD, int PH, int PW) {
    const int pools = PD * PH * PW;
    const int blocks = (pools + THREADS - 1) / THREADS;
    float* pooled = scratch<float>(static_cast<long long>(B) * CO * pools);
    dim3 grid(blocks, CO, B);
    conv_pool<<<grid, THREADS>>>(x, weight, bias, pooled, CI, CO, D, H, W, PH, PW, pools);
    dim3 pool_grid(blocks, B);
    logsumexp_relu<<<pool_grid, THREADS>>>(pooled, y, CO, pools);
}
