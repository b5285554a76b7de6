// Transposed 2D convolution with a 3x7 window, padding (1, 3): x[B, CI, H, W],
// weight[CI, CO, 3, 7], y[B, CO, H, W].
//
// A thread makes eight outputs down a column. The block walks the ten input rows that its
// strip needs; each is staged once, and a thread adds it to the up to three outputs that
// it reaches. The loop over rows is unrolled, so the sums stay in registers.

static constexpr int KH = 3;
static constexpr int KW = 7;
static constexpr int TAPS = KH * KW;
static constexpr int PAD_H = 1;
static constexpr int PAD_W = 3;
static constexpr int STRIP = 8;
static constexpr int THREADS = 32;
static constexpr int SPAN = THREADS + KW - 1;
static constexpr int ROWS = STRIP + KH - 1;

__global__ void conv_transpose_columns(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CI, int CO, int H, int W) {
    __shared__ float rows[ROWS][SPAN];
    __shared__ float taps[TAPS];

    const int tid = threadIdx.x;
    const int w0 = blockIdx.x * THREADS;
    const int h0 = blockIdx.y * STRIP;
    const int n = blockIdx.z / CO;
    const int co = blockIdx.z % CO;

    float acc[STRIP] = {};

    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(n) * CI + ci) * H * W;
        for (int r = 0; r < ROWS; ++r) {
            const int h = h0 + r + PAD_H - (KH - 1);
            for (int i = tid; i < SPAN; i += THREADS) {
                const int w = w0 + i + PAD_W - (KW - 1);
                const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                rows[r][i] = inside ? plane[h * W + w] : 0.0f;
            }
        }
        if (tid < TAPS) {
            taps[tid] = weight[(ci * CO + co) * TAPS + tid];
        }
        __syncthreads();

        #pragma unroll
        for (int kw = 0; kw < KW; ++kw) {
            const float top = taps[kw];
            const float middle = taps[KW + kw];
            const float bottom = taps[2 * KW + kw];
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float v = rows[r][tid + KW - 1 - kw];
                // Row r of the patch reaches output r - 2 through the top tap row.
                if (r >= 2) {
                    acc[r - 2] += v * top;
                }
                if (r >= 1 && r <= STRIP) {
                    acc[r - 1] += v * middle;
                }
                if (r < STRIP) {
                    acc[r] += v * bottom;
                }
            }
        }
        __syncthreads();
    }

    if (w0 + tid < W) {
        float* out = y + (static_cast<long long>(n) * CO + co) * H * W + w0 + tid;
        #pragma unroll
        for (int i = 0; i < STRIP; ++i) {
            if (h0 + i < H) {
                out[(h0 + i) * W] = acc[i];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int H, int W) {
    dim3 grid((W + THREADS - 1) / THREADS, (H + STRIP - 1) / STRIP, B * CO);
    conv_transpose_columns<<<grid, THREADS>>>(x, weight, y, CI, CO, H, W);
}
