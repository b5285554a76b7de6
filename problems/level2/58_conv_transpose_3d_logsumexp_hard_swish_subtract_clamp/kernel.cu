// l = logsumexp over channels of transposed conv3x3x3(x) + conv_bias (stride 2, padding 1);
// y = clamp(l * sigmoid(l + 3) / 6 - bias, -1, 1).
//
// Few input channels, so all filters fit into shared memory, channels of the output
// innermost. A thread finds the at most eight (tap, voxel) pairs that meet its output once,
// and then makes channel after channel from them, each going straight into the running
// LogSumExp.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int PAIRS = 8;

__global__ void conv_logsumexp(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ conv_bias,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int D, int H, int W, int HO, int WO, int positions) {
    extern __shared__ float filters[];
    for (int i = threadIdx.x; i < CI * CO * TAPS; i += THREADS) {
        const int tap = i % TAPS;
        const int co = i / TAPS % CO;
        const int ci = i / (TAPS * CO);
        filters[(ci * TAPS + tap) * CO + co] = weight[i];
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    const int volume = D * H * W;

    int taps[PAIRS];
    int voxels[PAIRS];
    int pairs = 0;
    // Even places take tap 1, odd ones taps 0 and 2; without output padding all exist.
    for (int kd = (dz + 1) % 2; kd < K; kd += 2) {
        for (int kh = (ho + 1) % 2; kh < K; kh += 2) {
            for (int kw = (wo + 1) % 2; kw < K; kw += 2) {
                taps[pairs] = (kd * K + kh) * K + kw;
                voxels[pairs] =
                    ((dz + 1 - kd) / 2 * H + (ho + 1 - kh) / 2) * W + (wo + 1 - kw) / 2;
                ++pairs;
            }
        }
    }

    const float* image = x + static_cast<long long>(blockIdx.y) * CI * volume;
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        float h = conv_bias[co];
        for (int ci = 0; ci < CI; ++ci) {
            for (int i = 0; i < pairs; ++i) {
                h += image[ci * volume + voxels[i]] * filters[(ci * TAPS + taps[i]) * CO + co];
            }
        }
        const float higher = fmaxf(top, h);
        sum = sum * expf(top - higher) + expf(h - higher);
        top = higher;
    }
    const float l = top + logf(sum);
    const float v = l / (1.0f + expf(-(l + 3.0f))) / 6.0f - *bias;
    y[static_cast<long long>(blockIdx.y) * positions + position] =
        fminf(fmaxf(v, -1.0f), 1.0f);
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int D, int H, int W, int DO, int HO, int WO) {
    const int positions = DO * HO * WO;
    dim3 grid((positions + THREADS - 1) / THREADS, B);
    const int shared = CI * CO * TAPS * sizeof(float);
    conv_logsumexp<<<grid, THREADS, shared>>>(x, weight, conv_bias, bias, y, CI, CO, D, H, W, HO,
                                              WO, positions);
}
