// y = sigmoid(softmax over channels of transposed conv3x3x3(x) + bias), stride 2, padding 1,
// output padding 1.
//
// The convolution's blocks own a channel, whose filter waits in shared memory; a thread per
// output clips to the one or two taps per axis that have its parity. A second kernel turns
// the channels of each position into their softmax, one thread per position.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;

__global__ void conv_transpose(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int D, int H, int W, int HO, int WO, int positions) {
    extern __shared__ float filter[];
    const int co = blockIdx.y;
    for (int i = threadIdx.x; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[(i / TAPS * CO + co) * TAPS + i % TAPS];
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    const int wo = position % WO;
    const int ho = position / WO % HO;
    const int dz = position / (WO * HO);
    // First tap of the right parity that reaches an input: tap 0 of the last odd place does not.
    const int kd_first = dz % 2 == 0 ? 1 : (dz / 2 + 1 < D ? 0 : 2);
    const int kh_first = ho % 2 == 0 ? 1 : (ho / 2 + 1 < H ? 0 : 2);
    const int kw_first = wo % 2 == 0 ? 1 : (wo / 2 + 1 < W ? 0 : 2);
    const int volume = D * H * W;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume;

    float sum = bias[co];
    for (int ci = 0; ci < CI; ++ci) {
        for (int kd = kd_first; kd < K; kd += 2) {
            const float* slice = image + (dz + 1 - kd) / 2 * H * W;
            for (int kh = kh_first; kh < K; kh += 2) {
                const float* row = slice + (ho + 1 - kh) / 2 * W;
                const float* taps = filter + ci * TAPS + (kd * K + kh) * K;
                for (int kw = kw_first; kw < K; kw += 2) {
                    sum += row[(wo + 1 - kw) / 2] * taps[kw];
                }
            }
        }
        image += volume;
    }
    y[(static_cast<long long>(blockIdx.z) * CO + co) * positions + position] = sum;
}

__global__ void softmax_sigmoid(float* y, int CO, int positions) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    float* at = y + static_cast<long long>(blockIdx.y) * CO * positions + position;
    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        top = fmaxf(top, at[static_cast<long long>(co) * positions]);
    }
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        sum += expf(at[static_cast<long long>(co) * positions] - top);
    }
    for (int co = 0; co < CO; ++co) {
        float* v = at + static_cast<long long>(co) * positions;
        *v = 1.0f / (1.0f + expf(-expf(*v - top) / sum));
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int DO, int HO, int WO) {
    const int positions = DO * HO * WO;
    const int blocks = (positions + THREADS - 1) / THREADS;
    dim3 grid(blocks, CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv_transpose<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, D, H, W, HO, WO,
                                              positions);
    dim3 position_grid(blocks, B);
    softmax_sigmoid<<<position_grid, THREADS>>>(y, CO, positions);
}
