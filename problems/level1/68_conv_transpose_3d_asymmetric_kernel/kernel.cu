// Transposed 3D convolution, stride 1: x[B, CI, D, H, W], weight[CI, CO, 3, 5, 5],
// y[B, CO, D + 2, H + 4, W + 4].
//
// A first kernel copies x into a scratch tensor with a border of zeros, as wide as the
// window less one. The second convolves that copy with the reversed filter: no output
// meets an edge, so its loops have neither guards nor clipping.

static constexpr int KD = 3;
static constexpr int KH = 5;
static constexpr int KW = 5;
static constexpr int TAPS = KD * KH * KW;
static constexpr int THREADS = 128;

__global__ void pad_with_zeros(const float* __restrict__ x, float* __restrict__ padded,
                               int D, int H, int W, int DP, int HP, int WP) {
    const int volume = DP * HP * WP;
    const float* from = x + static_cast<long long>(blockIdx.y) * D * H * W;
    float* to = padded + static_cast<long long>(blockIdx.y) * volume;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < volume; i += gridDim.x * THREADS) {
        const int w = i % WP - (KW - 1);
        const int h = i / WP % HP - (KH - 1);
        const int d = i / (WP * HP) - (KD - 1);
        const bool inside = d >= 0 && d < D && h >= 0 && h < H && w >= 0 && w < W;
        to[i] = inside ? from[(d * H + h) * W + w] : 0.0f;
    }
}

__global__ void conv3d_reversed(const float* __restrict__ padded,
                                const float* __restrict__ weight, float* __restrict__ y,
                                int CI, int CO, int DO, int HO, int WO, int DP, int HP, int WP) {
    extern __shared__ float filter[];

    const int co = blockIdx.y;
    for (int i = threadIdx.x; i < CI * TAPS; i += THREADS) {
        const int ci = i / TAPS;
        filter[i] = weight[(ci * CO + co) * TAPS + TAPS - 1 - i % TAPS];
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

    float sum = 0.0f;
    for (int ci = 0; ci < CI; ++ci) {
        const long long volume = static_cast<long long>(blockIdx.z) * CI + ci;
        const float* corner = padded + ((volume * DP + dz) * HP + ho) * WP + wo;
        const float* taps = filter + ci * TAPS;
        #pragma unroll
        for (int kd = 0; kd < KD; ++kd) {
            #pragma unroll
            for (int kh = 0; kh < KH; ++kh) {
                const float* row = corner + (kd * HP + kh) * WP;
                #pragma unroll
                for (int kw = 0; kw < KW; ++kw) {
                    sum += row[kw] * taps[(kd * KH + kh) * KW + kw];
                }
            }
        }
    }
    y[(static_cast<long long>(blockIdx.z) * CO + co) * positions + position] = sum;
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int D, int H, int W, int DO, int HO, int WO) {
    const int DP = D + 2 * (KD - 1);
    const int HP = H + 2 * (KH - 1);
    const int WP = W + 2 * (KW - 1);
    const int volume = DP * HP * WP;
    float* padded = scratch<float>(static_cast<long long>(B) * CI * volume);

    dim3 pad_grid(min((volume + THREADS - 1) / THREADS, 64), B * CI);
    pad_with_zeros<<<pad_grid, THREADS>>>(x, padded, D, H, W, DP, HP, WP);

    dim3 grid((DO * HO * WO + THREADS - 1) / THREADS, CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv3d_reversed<<<grid, THREADS, shared>>>(padded, weight, y, CI, CO, DO, HO, WO,
                                               DP, HP, WP);
}
