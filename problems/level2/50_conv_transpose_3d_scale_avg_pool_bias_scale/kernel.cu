// y = (scale1 * average pool 2x2x2 of transposed conv3x3x3(x) + conv_bias) + bias) * scale2,
// stride 2, padding 1.
//
// Along an axis the outputs 2 p and 2 p + 1 of a pool meet input p through taps 1 and 2 and
// input p + 1 through tap 0. Their average is thus a convolution of stride 1 with two taps,
// w1 + w2 and w0, per axis. One kernel sums the filters up that way, the other convolves.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int POOLED = 8;
static constexpr int THREADS = 128;

// pooled[ci, co, n]: bit 2 of n for depth, 1 for height, 0 for width; set means input p + 1.
__global__ void pool_filters(const float* __restrict__ weight, float* __restrict__ pooled,
                             int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    const float* taps = weight + static_cast<long long>(i / POOLED) * TAPS;
    const int n = i % POOLED;
    const int kd_first = n / 4 == 0 ? 1 : 0;
    const int kh_first = n / 2 % 2 == 0 ? 1 : 0;
    const int kw_first = n % 2 == 0 ? 1 : 0;
    float sum = 0.0f;
    // From tap 1 to tap 2, or tap 0 alone.
    for (int kd = kd_first; kd <= 2 * kd_first; ++kd) {
        for (int kh = kh_first; kh <= 2 * kh_first; ++kh) {
            for (int kw = kw_first; kw <= 2 * kw_first; ++kw) {
                sum += taps[(kd * K + kh) * K + kw];
            }
        }
    }
    pooled[i] = sum / POOLED;
}

__global__ void conv_pooled(const float* __restrict__ x, const float* __restrict__ pooled,
                            const float* __restrict__ conv_bias, const float* __restrict__ bias,
                            const float* __restrict__ scale1, const float* __restrict__ scale2,
                            float* __restrict__ y, int CI, int CO, int D, int H, int W, int PH,
                            int PW, int pools) {
    const int pool = blockIdx.x * THREADS + threadIdx.x;
    if (pool >= pools) {
        return;
    }
    const int co = blockIdx.y;
    const int w = pool % PW;
    const int h = pool / PW % PH;
    const int d = pool / (PW * PH);
    // A pool is complete only where its next input exists: no guard is needed.
    const float* in = x + ((static_cast<long long>(blockIdx.z) * CI * D + d) * H + h) * W + w;
    float sum = 0.0f;
    for (int ci = 0; ci < CI; ++ci) {
        const float* taps = pooled + (ci * CO + co) * POOLED;
        #pragma unroll
        for (int n = 0; n < POOLED; ++n) {
            sum += in[(n / 4 * H + n / 2 % 2) * W + n % 2] * taps[n];
        }
        in += D * H * W;
    }
    const float v = (sum + conv_bias[co]) * *scale1;
    y[(static_cast<long long>(blockIdx.z) * CO + co) * pools + pool] = (v + bias[co]) * *scale2;
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* scale1,
            const float* bias, const float* scale2, float* y, int B, int CI, int CO, int D, int H,
            int W, int PD, int PH, int PW) {
    const int filters = CI * CO * POOLED;
    const int pools = PD * PH * PW;
    float* pooled = scratch<float>(filters);
    pool_filters<<<(filters + THREADS - 1) / THREADS, THREADS>>>(weight, pooled, filters);
    dim3 grid((pools + THREADS - 1) / THREADS, CO, B);
    conv_pooled<<<grid, THREADS>>>(x, pooled, conv_bias, bias, scale1, scale2, y, CI, CO, D, H, W,
                                   PH, PW, pools);
}
