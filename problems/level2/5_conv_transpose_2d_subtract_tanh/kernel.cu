// Transposed 4x4 convolution with stride 2, padding 1, output padding 1; y = tanh(h - bias),
// of size 2 H + 1 by 2 W + 1.
//
// Output o meets inputs through the taps of one parity only: o even takes taps 1 and 3,
// o odd takes 0 and 2. A block is one warp on a run of an output row, so the row's
// parity is uniform; half of its lanes take the even columns, the other half the odd ones,
// and all of them run through the same four guarded products.

static constexpr int K = 4;
static constexpr int TAPS = K * K;
static constexpr int HALF = 16;
static constexpr int THREADS = 2 * HALF;

__global__ void conv_transpose_rows(const float* __restrict__ x,
                                    const float* __restrict__ weight,
                                    const float* __restrict__ conv_bias,
                                    const float* __restrict__ bias, float* __restrict__ y,
                                    int CI, int CO, int H, int W, int HO, int WO) {
    extern __shared__ float filter[];

    const int tid = threadIdx.x;
    const int n = blockIdx.z / CO;
    const int co = blockIdx.z % CO;
    for (int i = tid; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[(i / TAPS * CO + co) * TAPS + i % TAPS];
    }
    __syncthreads();

    const int ho = blockIdx.y;
    const int odd = tid / HALF;
    const int wo = 2 * (blockIdx.x * HALF + tid % HALF) + odd;
    if (wo >= WO) {
        return;
    }
    // The two taps of each axis, and the inputs that they belong to.
    const int kh0 = (ho + 1) % 2;
    const int kw0 = 1 - odd;
    const int h0 = (ho + 1 - kh0) / 2;
    const int w0 = (wo + 1 - kw0) / 2;
    const bool upper = h0 < H;
    const bool lower = h0 > 0;
    const bool left = w0 < W;
    const bool right = w0 > 0;

    float sum = 0.0f;
    const float* in = x + static_cast<long long>(n) * CI * H * W;
    for (int ci = 0; ci < CI; ++ci) {
        const float* taps = filter + ci * TAPS + kh0 * K + kw0;
        if (upper) {
            const float* row = in + h0 * W;
            sum += left ? row[w0] * taps[0] : 0.0f;
            sum += right ? row[w0 - 1] * taps[2] : 0.0f;
        }
        if (lower) {
            const float* row = in + (h0 - 1) * W;
            sum += left ? row[w0] * taps[2 * K] : 0.0f;
            sum += right ? row[w0 - 1] * taps[2 * K + 2] : 0.0f;
        }
        in += H * W;
    }
    const long long row = static_cast<long long>(blockIdx.z) * HO + ho;
    y[row * WO + wo] = tanhf(sum + conv_bias[co] - bias[co]);
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int shared = CI * TAPS * sizeof(float);
    dim3 grid((WO + THREADS - 1) / THREADS, HO, B * CO);
    conv_transpose_rows<<<grid, THREADS, shared>>>(x, weight, conv_bias, bias, y, CI, CO, H, W,
                                                   HO, WO);
}
