// y = min over channels of scale * (conv3x3(x) + bias).
//
// A block makes 32 positions, one per lane. Its warps share the output channels out: each
// makes two at a time, so that a load of x serves both, and keeps the smallest value it
// has seen. At the end the warps' minima meet in shared memory.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int WARP = 32;
static constexpr int WARPS = 4;

__global__ void conv_scale_min(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int H, int W, int HO, int WO, float scale_factor) {
    __shared__ float minima[WARPS][WARP];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int pixels = HO * WO;
    const int position = blockIdx.x * WARP + lane;
    // Lanes beyond the image repeat its last position and store nothing.
    const int at = min(position, pixels - 1);
    const float* corner =
        x + (static_cast<long long>(blockIdx.y) * CI * H + at / WO) * W + at % WO;

    float least = INFINITY;
    for (int co = 2 * warp; co < CO; co += 2 * WARPS) {
        const int partner = min(co + 1, CO - 1);
        const float* w0 = weight + static_cast<long long>(co) * CI * TAPS;
        const float* w1 = weight + static_cast<long long>(partner) * CI * TAPS;
        const float* in = corner;
        float sum0 = bias[co];
        float sum1 = bias[partner];
        for (int ci = 0; ci < CI; ++ci) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                const float v = in[tap / K * W + tap % K];
                sum0 += v * w0[tap];
                sum1 += v * w1[tap];
            }
            w0 += TAPS;
            w1 += TAPS;
            in += H * W;
        }
        // The scaling may be negative, so it comes before the minimum.
        least = fminf(least, fminf(sum0 * scale_factor, sum1 * scale_factor));
    }
    minima[warp][lane] = least;
    __syncthreads();
    if (warp == 0 && position < pixels) {
        #pragma unroll
        for (int i = 1; i < WARPS; ++i) {
            least = fminf(least, minima[i][lane]);
        }
        y[static_cast<long long>(blockIdx.y) * pixels + position] = least;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int H, int W, int HO, int WO, float scale_factor) {
    dim3 block(WARP, WARPS);
    dim3 grid((HO * WO + WARP - 1) / WARP, B);
    conv_scale_min<<<grid, block>>>(x, weight, bias, y, CI, CO, H, W, HO, WO, scale_factor);
}
