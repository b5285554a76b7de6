// Transposed 2D convolution for any stride, padding, dilation and grouping, here with a
// 3x5 window, stride (2, 3), padding (1, 2), dilation (2, 1) and four groups.
//
// Gather form: for every tap a thread asks which input would reach its output, which
// exists only if the distance divides by the stride. A grid-stride loop covers outputs.

static constexpr int KH = 3;
static constexpr int KW = 5;
static constexpr int GROUPS = 4;
static constexpr int THREADS = 256;
static constexpr int MAX_BLOCKS = 64;

struct Geometry {
    int stride_h;
    int stride_w;
    int pad_h;
    int pad_w;
    int dilation_h;
    int dilation_w;
};

__device__ __forceinline__ Geometry geometry() {
    return {2, 3, 1, 2, 2, 1};
}

__global__ void conv_transpose_general(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CG, int OG, int H, int W, int HO, int WO,
                                       long long outputs) {
    const Geometry g = geometry();
    const int plane = H * W;
    const long long stride = static_cast<long long>(gridDim.x) * THREADS;
    const long long first = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    for (long long i = first; i < outputs; i += stride) {
        const int wo = i % WO;
        const int ho = i / WO % HO;
        const int co = i / (static_cast<long long>(WO) * HO) % (GROUPS * OG);
        const int n = i / (static_cast<long long>(WO) * HO * GROUPS * OG);
        const int group = co / OG;
        const float* image = x + (static_cast<long long>(n) * GROUPS + group) * CG * plane;
        const float* filters = weight + (group * CG * OG + co % OG) * (KH * KW);

        float sum = 0.0f;
        for (int kh = 0; kh < KH; ++kh) {
            const int up = ho + g.pad_h - kh * g.dilation_h;
            if (up < 0 || up % g.stride_h != 0 || up / g.stride_h >= H) {
                continue;
            }
            for (int kw = 0; kw < KW; ++kw) {
                const int left = wo + g.pad_w - kw * g.dilation_w;
                if (left < 0 || left % g.stride_w != 0 || left / g.stride_w >= W) {
                    continue;
                }
                const float* pixel = image + up / g.stride_h * W + left / g.stride_w;
                const float* tap = filters + kh * KW + kw;
                for (int c = 0; c < CG; ++c) {
                    sum += pixel[c * plane] * tap[c * OG * (KH * KW)];
                }
            }
        }
        y[i] = sum;
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CG, int OG, int CO, int H, int W, int HO, int WO) {
    const long long outputs = static_cast<long long>(B) * CO * HO * WO;
    const long long needed = (outputs + THREADS - 1) / THREADS;
    const int blocks = needed < MAX_BLOCKS ? needed : MAX_BLOCKS;
    conv_transpose_general<<<blocks, THREADS>>>(x, weight, y, CG, OG, H, W, HO, WO, outputs);
}
