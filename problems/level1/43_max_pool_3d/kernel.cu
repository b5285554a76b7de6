// Max pooling of x[B, C, D, H, W] with a window of 3, stride 2, padding 1, dilation 3.
//
// Dilation is larger than stride, so neighbouring windows share few inputs and staging
// would not pay: one thread makes one output straight from global memory.

static constexpr int THREADS = 256;
static constexpr int KERNEL = 3;
static constexpr int STRIDE = 2;
static constexpr int PAD = 1;
static constexpr int DILATION = 3;

__global__ void max_pool_direct(const float* __restrict__ x, float* __restrict__ y, int D, int H,
                                int W, int DO, int HO, int WO, long long outputs) {
    const long long index = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (index >= outputs) {
        return;
    }
    const int wo = index % WO;
    const int ho = index / WO % HO;
    const int out_depth = index / (static_cast<long long>(WO) * HO) % DO;
    const long long plane = index / (static_cast<long long>(WO) * HO * DO);
    const float* in = x + plane * D * H * W;

    const int d0 = out_depth * STRIDE - PAD;
    const int h0 = ho * STRIDE - PAD;
    const int w0 = wo * STRIDE - PAD;

    // Taps outside the image are left out, which is what padding with -inf means.
    float best = -INFINITY;
    for (int i = 0; i < KERNEL; ++i) {
        const int d = d0 + i * DILATION;
        if (d < 0 || d >= D) {
            continue;
        }
        for (int j = 0; j < KERNEL; ++j) {
            const int h = h0 + j * DILATION;
            if (h < 0 || h >= H) {
                continue;
            }
            const float* row = in + (static_cast<long long>(d) * H + h) * W;
            #pragma unroll
            for (int k = 0; k < KERNEL; ++k) {
                const int w = w0 + k * DILATION;
                if (w >= 0 && w < W) {
                    const float v = row[w];
                    if (v > best || v != v) {
                        best = v;
                    }
                }
            }
        }
    }
    y[index] = best;
}

void launch(const float* x, float* y, int B, int C, int D, int H, int W, int DO, int HO, int WO) {
    const long long outputs = static_cast<long long>(B) * C * DO * HO * WO;
    const long long blocks = (outputs + THREADS - 1) / THREADS;
    max_pool_direct<<<blocks, THREADS>>>(x, y, D, H, W, DO, HO, WO, outputs);
}
