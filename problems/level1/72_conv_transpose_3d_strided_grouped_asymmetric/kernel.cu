// Transposed 3D convolution with a 3x5x7 window, stride 2, padding (1, 2, 3), output
// padding 1, four groups: x[B, 4 CG, D, H, W], weight[4 CG, OG, 3, 5, 7],
// y[B, 4 OG, 2 D, 2 H, 2 W].
//
// Along each axis an output of even place meets only every second tap, and one of odd
// place the others. The kernel is instantiated for each of the eight parity classes: its
// threads run over the outputs of one class, and the taps are known at compile time.

static constexpr int KD = 3;
static constexpr int KH = 5;
static constexpr int KW = 7;
static constexpr int TAPS = KD * KH * KW;
static constexpr int PAD_D = 1;
static constexpr int PAD_H = 2;
static constexpr int PAD_W = 3;
static constexpr int STRIDE = 2;
static constexpr int GROUPS = 4;
static constexpr int THREADS = 128;

template <int PD, int PH, int PW>
__global__ void conv_transpose3d_class(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CG, int OG, int D, int H, int W) {
    // Output 2 j + parity meets input i through tap 2 (j - i) + parity + padding.
    constexpr int FIRST_D = (PD + PAD_D) % STRIDE;
    constexpr int FIRST_H = (PH + PAD_H) % STRIDE;
    constexpr int FIRST_W = (PW + PAD_W) % STRIDE;
    extern __shared__ float taps[];

    const int co = blockIdx.y;
    const int group = co / OG;
    const int volume = D * H * W;
    for (int i = threadIdx.x; i < CG * TAPS; i += THREADS) {
        const int ci = group * CG + i / TAPS;
        taps[i] = weight[(ci * OG + co % OG) * TAPS + i % TAPS];
    }
    __syncthreads();

    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= volume) {
        return;
    }
    const int jw = position % W;
    const int jh = position / W % H;
    const int jd = position / (W * H);
    const float* image = x + (static_cast<long long>(blockIdx.z) * GROUPS + group) * CG * volume;

    float sum = 0.0f;
    for (int c = 0; c < CG; ++c) {
        const float* channel = image + static_cast<long long>(c) * volume;
        const float* filter = taps + c * TAPS;
        #pragma unroll
        for (int kd = FIRST_D; kd < KD; kd += STRIDE) {
            const int d = jd + (PD + PAD_D - kd) / STRIDE;
            if (d < 0 || d >= D) {
                continue;
            }
            #pragma unroll
            for (int kh = FIRST_H; kh < KH; kh += STRIDE) {
                const int h = jh + (PH + PAD_H - kh) / STRIDE;
                if (h < 0 || h >= H) {
                    continue;
                }
                #pragma unroll
                for (int kw = FIRST_W; kw < KW; kw += STRIDE) {
                    const int w = jw + (PW + PAD_W - kw) / STRIDE;
                    const float v = (w >= 0 && w < W) ? channel[(d * H + h) * W + w] : 0.0f;
                    sum += v * filter[(kd * KH + kh) * KW + kw];
                }
            }
        }
    }

    const long long plane = static_cast<long long>(blockIdx.z) * GROUPS * OG + co;
    const long long slice = plane * (STRIDE * D) + STRIDE * jd + PD;
    const long long row = slice * (STRIDE * H) + STRIDE * jh + PH;
    y[row * (STRIDE * W) + STRIDE * jw + PW] = sum;
}

void launch(const float* x, const float* weight, float* y,
            int B, int CG, int OG, int CO, int D, int H, int W) {
    dim3 grid((D * H * W + THREADS - 1) / THREADS, CO, B);
    const int shared = CG * TAPS * sizeof(float);
    conv_transpose3d_class<0, 0, 0><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<0, 0, 1><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<0, 1, 0><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<0, 1, 1><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<1, 0, 0><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<1, 0, 1><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<1, 1, 0><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
    conv_transpose3d_class<1, 1, 1><<<grid, THREADS, shared>>>(x, weight, y, CG, OG, D, H, W);
}
