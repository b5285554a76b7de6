// Transposed 3D convolution, stride 1: x[B, CI, D, H, W], weight[CI, CO, 3, 3, 3],
// y[B, CO, D + 2, H + 2, W + 2].
//
// Split-K: the input channels are dealt to groups of blocks, sixteen each, that leave
// partial sums in a scratch tensor; a second kernel adds the partial sums in a fixed
// order. Small images fill the machine that way, and no atomics blur the order.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int CI_PART = 16;
static constexpr int THREADS = 128;

__global__ void partial_sums(const float* __restrict__ x, const float* __restrict__ weight,
                             float* __restrict__ partial, int B, int CI, int CO, int D, int H,
                             int W, int DO, int HO, int WO) {
    __shared__ float taps[CI_PART * TAPS];

    const int co = blockIdx.y;
    const int n = blockIdx.z % B;
    const int part = blockIdx.z / B;
    const int ci0 = part * CI_PART;
    const int channels = min(CI_PART, CI - ci0);
    for (int i = threadIdx.x; i < channels * TAPS; i += THREADS) {
        taps[i] = weight[((ci0 + i / TAPS) * CO + co) * TAPS + i % TAPS];
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
    const int volume = D * H * W;
    const float* image = x + (static_cast<long long>(n) * CI + ci0) * volume;

    float sum = 0.0f;
    for (int kd = 0; kd < K; ++kd) {
        for (int kh = 0; kh < K; ++kh) {
            for (int kw = 0; kw < K; ++kw) {
                const int d = dz - kd;
                const int h = ho - kh;
                const int w = wo - kw;
                // One unsigned comparison tests both ends of a range.
                if (static_cast<unsigned>(d) >= D || static_cast<unsigned>(h) >= H ||
                    static_cast<unsigned>(w) >= W) {
                    continue;
                }
                const int tap = (kd * K + kh) * K + kw;
                const float* voxel = image + (d * H + h) * W + w;
                #pragma unroll 4
                for (int c = 0; c < channels; ++c) {
                    sum += voxel[static_cast<long long>(c) * volume] * taps[c * TAPS + tap];
                }
            }
        }
    }
    const long long slab = (static_cast<long long>(part) * B + n) * CO + co;
    partial[slab * positions + position] = sum;
}

__global__ void add_parts(const float* __restrict__ partial, float* __restrict__ y,
                          long long outputs, int parts) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < outputs) {
        float sum = partial[i];
        for (int part = 1; part < parts; ++part) {
            sum += partial[part * outputs + i];
        }
        y[i] = sum;
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    const int positions = DO * HO * WO;
    const int parts = (CI + CI_PART - 1) / CI_PART;
    const long long outputs = static_cast<long long>(B) * CO * positions;
    float* partial = scratch<float>(parts * outputs);

    dim3 grid((positions + THREADS - 1) / THREADS, CO, parts * B);
    partial_sums<<<grid, THREADS>>>(x, weight, partial, B, CI, CO, D, H, W, DO, HO, WO);
    add_parts<<<(outputs + THREADS - 1) / THREADS, THREADS>>>(partial, y, outputs, parts);
}
