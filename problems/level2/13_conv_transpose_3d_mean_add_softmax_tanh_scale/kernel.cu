// y = tanh(softmax over channels of mean over depth of transposed conv3x3x3(x) + conv_bias +
// bias) * scaling, stride 1, padding 1.
//
// Under the mean over depth, tap kd meets every slice whose target is inside: all but the
// first for kd = 0, all for kd = 1, all but the last for kd = 2. One kernel makes these three
// sums (each added up by itself), the other a 2D convolution of them, all output channels
// of a pixel per thread, with the logits in shared memory.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;
static constexpr int PIXELS = 32;

__global__ void depth_sums(const float* __restrict__ x, float* __restrict__ sums, int D,
                           int plane) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= plane) {
        return;
    }
    const float* in = x + static_cast<long long>(blockIdx.y) * D * plane + p;
    float inner = 0.0f;
    for (int d = 1; d < D - 1; ++d) {
        inner += in[static_cast<long long>(d) * plane];
    }
    const float first = in[0];
    const float last = in[static_cast<long long>(D - 1) * plane];
    float* out = sums + static_cast<long long>(blockIdx.y) * K * plane + p;
    // With a single slice, first and last are the same one.
    out[0] = D > 1 ? inner + last : 0.0f;
    out[plane] = D > 1 ? first + inner + last : first;
    out[2 * plane] = D > 1 ? first + inner : 0.0f;
}

__global__ void conv_softmax_tanh(const float* __restrict__ sums,
                                  const float* __restrict__ weight,
                                  const float* __restrict__ conv_bias,
                                  const float* __restrict__ bias, float* __restrict__ y, int CI,
                                  int CO, int D, int H, int W, float scaling_factor) {
    extern __shared__ float logits[];
    const int lane = threadIdx.x;
    const int plane = H * W;
    const int p = blockIdx.x * PIXELS + lane;
    if (p >= plane) {
        return;
    }
    const int h = p / W;
    const int w = p % W;
    const float* image = sums + static_cast<long long>(blockIdx.y) * CI * K * plane;

    // Every thread keeps to its own column of the logits, so no barrier is needed.
    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        float total = 0.0f;
        for (int ci = 0; ci < CI; ++ci) {
            const float* filter = weight + (ci * CO + co) * TAPS;
            const float* in = image + ci * K * plane + p;
            #pragma unroll
            for (int tap = 0; tap < K * K; ++tap) {
                const int dr = 1 - tap / K;
                const int dc = 1 - tap % K;
                const bool inside = h + dr >= 0 && h + dr < H && w + dc >= 0 && w + dc < W;
                if (inside) {
                    const int at = dr * W + dc;
                    total += in[at] * filter[tap] + in[plane + at] * filter[K * K + tap]
                           + in[2 * plane + at] * filter[2 * K * K + tap];
                }
            }
        }
        const float v = total / D + conv_bias[co] + bias[co];
        logits[co * PIXELS + lane] = v;
        top = fmaxf(top, v);
    }
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        const float e = expf(logits[co * PIXELS + lane] - top);
        logits[co * PIXELS + lane] = e;
        sum += e;
    }
    for (int co = 0; co < CO; ++co) {
        const float v = tanhf(logits[co * PIXELS + lane] / sum) * scaling_factor;
        y[(static_cast<long long>(blockIdx.y) * CO + co) * plane + p] = v;
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int D, int H, int W, float scaling_factor) {
    const int plane = H * W;
    float* sums = scratch<float>(static_cast<long long>(B) * CI * K * plane);
    dim3 sum_grid((plane + THREADS - 1) / THREADS, B * CI);
    depth_sums<<<sum_grid, THREADS>>>(x, sums, D, plane);
    dim3 grid((plane + PIXELS - 1) / PIXELS, B);
    const int shared = CO * PIXELS * sizeof(float);
    conv_softmax_tanh<<<grid, PIXELS, shared>>>(sums, weight, conv_bias, bias, y, CI, CO, D, H, W,
                                                scaling_factor);
}
