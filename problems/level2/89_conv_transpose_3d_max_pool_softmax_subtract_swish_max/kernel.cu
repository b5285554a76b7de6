// p = softmax over channels of max pool 2x2x2 of transposed conv3x3x3(x) + bias (stride 2,
// padding 1, output padding 1); y = max over channels of swish(p - subtract).
//
// The eight results under a pool begin at one input voxel, so a thread makes all pooled
// channels from that voxel and its neighbours. The logits wait in the thread's own column of
// shared memory for the softmax; no barrier is needed.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 32;

__global__ void conv_pool_softmax_max(const float* __restrict__ x,
                                      const float* __restrict__ weight,
                                      const float* __restrict__ bias,
                                      const float* __restrict__ subtract, float* __restrict__ y,
                                      int CI, int CO, int D, int H, int W) {
    extern __shared__ float logits[];
    const int tid = threadIdx.x;
    const int volume = D * H * W;
    const int voxel = blockIdx.x * THREADS + tid;
    if (voxel >= volume) {
        return;
    }
    const int w = voxel % W;
    const int h = voxel / W % H;
    const int d = voxel / (W * H);
    const float* image = x + static_cast<long long>(blockIdx.y) * CI * volume + voxel;

    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        float acc[8] = {};
        for (int ci = 0; ci < CI; ++ci) {
            const float* in = image + ci * volume;
            const float* taps = weight + (ci * CO + co) * TAPS;
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
                        acc[q] += v * taps[(kd * K + kh) * K + kw];
                    }
                }
            }
        }
        float pooled = acc[0];
        #pragma unroll
        for (int q = 1; q < 8; ++q) {
            pooled = fmaxf(pooled, acc[q]);
        }
        pooled += bias[co];
        logits[co * THREADS + tid] = pooled;
        top = fmaxf(top, pooled);
    }
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        sum += expf(logits[co * THREADS + tid] - top);
    }
    float best = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        const float v = expf(logits[co * THREADS + tid] - top) / sum - subtract[co];
        best = fmaxf(best, v / (1.0f + expf(-v)));
    }
    y[static_cast<long long>(blockIdx.y) * volume + voxel] = best;
}

void launch(const float* x, const float* weight, const float* bias, const float* subtract,
            float* y, int B, int CI, int CO, int D, int H, int W) {
    dim3 grid((D * H * W + THREADS - 1) / THREADS, B);
    const int shared = CO * THREADS * sizeof(float);
    conv_pool_softmax_max<<<grid, THREADS, shared>>>(x, weight, bias, subtract, y, CI, CO, D, H,
                                                     W);
}
