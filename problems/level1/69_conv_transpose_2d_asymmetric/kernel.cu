// Transposed 2D convolution, stride 1: x[B, CI, H, W], weight[CI, CO, 3, 5],
// y[B, CO, H + 2, W + 4].
//
// Scatter form without atomics: a thread stands for an input column and adds its product
// with one tap to a row of outputs in shared memory. Within a tap all threads hit
// different columns; a barrier keeps the taps of a row apart.

static constexpr int KH = 3;
static constexpr int KW = 5;
static constexpr int TAPS = KH * KW;
static constexpr int THREADS = 64;
// Outputs of a block: those that all of its inputs, and no others, reach.
static constexpr int COLUMNS = THREADS - (KW - 1);

__global__ void conv_transpose_scatter(const float* __restrict__ x,
                                       const float* __restrict__ weight, float* __restrict__ y,
                                       int CI, int CO, int H, int W, int HO, int WO) {
    // Columns beyond the block's own collect sums that a neighbour makes as well.
    __shared__ float acc[THREADS + KW - 1];

    const int tid = threadIdx.x;
    const int first = blockIdx.x * COLUMNS;
    const int w = first + tid - (KW - 1);
    const int ho = blockIdx.y;
    const int n = blockIdx.z / CO;
    const int co = blockIdx.z % CO;
    const bool inside = w >= 0 && w < W;

    acc[tid] = 0.0f;
    if (tid < KW - 1) {
        acc[THREADS + tid] = 0.0f;
    }
    __syncthreads();

    for (int kh = 0; kh < KH; ++kh) {
        const int h = ho - kh;
        // The same for the whole block, so the barriers below stay uniform.
        if (h < 0 || h >= H) {
            continue;
        }
        float sum[KW] = {};
        if (inside) {
            const float* column = x + (static_cast<long long>(n) * CI * H + h) * W + w;
            for (int ci = 0; ci < CI; ++ci) {
                const float v = column[static_cast<long long>(ci) * H * W];
                const float* taps = weight + ((ci * CO + co) * KH + kh) * KW;
                #pragma unroll
                for (int kw = 0; kw < KW; ++kw) {
                    sum[kw] += v * taps[kw];
                }
            }
        }
        #pragma unroll
        for (int kw = 0; kw < KW; ++kw) {
            acc[tid + kw] += sum[kw];
            __syncthreads();
        }
    }

    if (tid < COLUMNS && first + tid < WO) {
        const long long row = (static_cast<long long>(n) * CO + co) * HO + ho;
        y[row * WO + first + tid] = acc[tid + KW - 1];
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    // B * CO = 8192 officially, within the limit of the z dimension.
    dim3 grid((WO + COLUMNS - 1) / COLUMNS, HO, B * CO);
    conv_transpose_scatter<<<grid, THREADS>>>(x, weight, y, CI, CO, H, W, HO, WO);
}
