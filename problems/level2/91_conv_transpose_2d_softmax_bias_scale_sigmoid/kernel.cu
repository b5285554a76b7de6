// y = sigmoid((softmax over channels of transposed conv4x4(x) + conv_bias) + bias) * scaling),
// stride 2, padding 1, output padding 1.
//
// A block makes 32 neighbouring outputs of one row, a lane each; its warps take output
// channels in turn and leave all logits in shared memory. The softmax then belongs to a
// lane: every warp finds maximum and sum for itself and finishes its own channels.

static constexpr int K = 4;
static constexpr int TAPS = K * K;
static constexpr int WARP = 32;
static constexpr int WARPS = 4;

__global__ void conv_transpose_softmax(const float* __restrict__ x,
                                       const float* __restrict__ weight,
                                       const float* __restrict__ conv_bias,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       int CI, int CO, int H, int W, int HO, int WO,
                                       float scaling_factor) {
    extern __shared__ float logits[];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int wo = blockIdx.x * WARP + lane;
    const int ho = blockIdx.y;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * H * W;

    // Of each axis two taps have the parity that meets this output.
    const int kh0 = (ho + 1) % 2;
    const int kw0 = (wo + 1) % 2;
    const int h0 = (ho + 1 - kh0) / 2;
    const int w0 = (wo + 1 - kw0) / 2;
    const bool upper = h0 < H;
    const bool lower = h0 > 0;
    const bool right = w0 < W;
    const bool left = w0 > 0 && w0 <= W;
    const float* corner = image + h0 * W + w0;

    for (int co = warp; co < CO; co += WARPS) {
        const float* taps = weight + co * TAPS + kh0 * K + kw0;
        const float* in = corner;
        float sum = conv_bias[co];
        for (int ci = 0; ci < CI; ++ci) {
            sum += upper && right ? in[0] * taps[0] : 0.0f;
            sum += upper && left ? in[-1] * taps[2] : 0.0f;
            sum += lower && right ? in[-W] * taps[2 * K] : 0.0f;
            sum += lower && left ? in[-W - 1] * taps[2 * K + 2] : 0.0f;
            in += H * W;
            taps += CO * TAPS;
        }
        logits[co * WARP + lane] = sum;
    }
    __syncthreads();

    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        top = fmaxf(top, logits[co * WARP + lane]);
    }
    float total = 0.0f;
    for (int co = 0; co < CO; ++co) {
        total += expf(logits[co * WARP + lane] - top);
    }
    if (wo >= WO) {
        return;
    }
    for (int co = warp; co < CO; co += WARPS) {
        const float probability = expf(logits[co * WARP + lane] - top) / total;
        const float v = (probability + bias[co]) * scaling_factor;
        const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
        y[(plane * HO + ho) * WO + wo] = 1.0f / (1.0f + expf(-v));
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO,
            float scaling_factor) {
    dim3 block(WARP, WARPS);
    dim3 grid((WO + WARP - 1) / WARP, HO, B);
    const int shared = CO * WARP * sizeof(float);
    conv_transpose_softmax<<<grid, block, shared>>>(x, weight, conv_bias, bias, y, CI, CO, H, W,
                                                    HO, WO, scaling_factor);
}
