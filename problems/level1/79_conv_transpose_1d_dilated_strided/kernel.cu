// Transposed 1D convolution with three taps, stride 2, padding 1, dilation 2:
// x[B, CI, L], weight[CI, CO, 3], y[B, CO, 2 L + 1].
//
// Output 2 j + 1 meets inputs j + 1, j and j - 1; even outputs meet nothing and are zero.
// A warp holds 32 neighbouring inputs, one a lane, and passes them to both sides by
// shuffles: every input is loaded once for three taps. The outer lanes only lend theirs.

static constexpr int WARP = 32;
static constexpr int OUT = WARP - 2;
static constexpr int WARPS = 4;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__global__ void conv_transpose1d_pairs(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CI, int CO, int L, int LO) {
    const int lane = threadIdx.x;
    const int j = (blockIdx.x * WARPS + threadIdx.y) * OUT + lane - 1;
    const int co = blockIdx.y;
    const bool exists = j >= 0 && j < L;
    const float* in = x + static_cast<long long>(blockIdx.z) * CI * L + j;

    float sum = 0.0f;
    for (int ci = 0; ci < CI; ++ci) {
        const float here = exists ? in[static_cast<long long>(ci) * L] : 0.0f;
        const float before = __shfl_up_sync(FULL_MASK, here, 1);
        const float after = __shfl_down_sync(FULL_MASK, here, 1);
        const float* taps = weight + (ci * CO + co) * 3;
        sum += after * taps[0];
        sum += here * taps[1];
        sum += before * taps[2];
    }

    float* out = y + (static_cast<long long>(blockIdx.z) * CO + co) * LO;
    if (lane > 0 && lane < WARP - 1 && exists) {
        out[2 * j] = 0.0f;
        out[2 * j + 1] = sum;
        if (j == L - 1) {
            out[2 * L] = 0.0f;
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int L, int LO) {
    dim3 block(WARP, WARPS);
    dim3 grid((L + WARPS * OUT - 1) / (WARPS * OUT), CO, B);
    conv_transpose1d_pairs<<<grid, block>>>(x, weight, y, CI, CO, L, LO);
}
