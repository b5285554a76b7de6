// h = min over channels of transposed conv3x3(x) + conv_bias (stride 2, padding 1, output
// padding 1); y = gelu(sum of h over rows) + bias, one number per image and column.
//
// A thread stands for an input and makes the 2x2 outputs that begin at twice its place, for
// one output channel after the other, keeping the four smallest values. The second kernel
// sums columns, a thread each, neighbours side by side.

static constexpr int TAPS = 9;
static constexpr int THREADS = 64;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

__global__ void channel_minima(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ conv_bias, float* __restrict__ minima,
                               int CI, int CO, int H, int W) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    const int plane = H * W;
    if (pixel >= plane) {
        return;
    }
    const int i = pixel / W;
    const int j = pixel % W;
    const bool right = j + 1 < W;
    const bool below = i + 1 < H;
    const float* first = x + static_cast<long long>(blockIdx.y) * CI * plane + pixel;

    float least[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    for (int co = 0; co < CO; ++co) {
        const float level = conv_bias[co];
        float sum[4] = {level, level, level, level};
        const float* in = first;
        for (int ci = 0; ci < CI; ++ci) {
            const float* w = weight + (ci * CO + co) * TAPS;
            const float here = in[0];
            const float east = right ? in[1] : 0.0f;
            const float south = below ? in[W] : 0.0f;
            const float corner = right && below ? in[W + 1] : 0.0f;
            sum[0] += here * w[4];
            sum[1] += here * w[5] + east * w[3];
            sum[2] += here * w[7] + south * w[1];
            sum[3] += here * w[8] + east * w[6] + south * w[2] + corner * w[0];
            in += plane;
        }
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            least[q] = fminf(least[q], sum[q]);
        }
    }
    const int WO = 2 * W;
    const long long row = static_cast<long long>(blockIdx.y) * 2 * H + 2 * i;
    float* out = minima + row * WO + 2 * j;
    out[0] = least[0];
    out[1] = least[1];
    out[WO] = least[2];
    out[WO + 1] = least[3];
}

__global__ void column_gelu(const float* __restrict__ minima, const float* __restrict__ bias,
                            float* __restrict__ y, int HO, int WO) {
    const int column = blockIdx.x * THREADS + threadIdx.x;
    if (column >= WO) {
        return;
    }
    const float* in = minima + static_cast<long long>(blockIdx.y) * HO * WO + column;
    float sum = 0.0f;
    for (int row = 0; row < HO; ++row) {
        sum += in[static_cast<long long>(row) * WO];
    }
    y[static_cast<long long>(blockIdx.y) * WO + column] =
        0.5f * sum * (1.0f + erff(sum * INV_SQRT_2)) + *bias;
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int H, int W, int HO, int WO) {
    float* minima = scratch<float>(static_cast<long long>(B) * HO * WO);
    dim3 grid((H * W + THREADS - 1) / THREADS, B);
    channel_minima<<<grid, THREADS>>>(x, weight, conv_bias, minima, CI, CO, H, W);
    dim3 column_grid((WO + THREADS - 1) / THREADS, B);
    column_gelu<<<column_grid, THREADS>>>(minima, bias, y, HO, WO);
}
