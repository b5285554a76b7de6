// 3D convolution with a 3x3x1 window: x[B, CI, H, W, D], weight[CO, CI, 3, 3, 1],
// y[B, CO, H - 2, W - 2, D].
//
// The window is one deep, so W and D merge into one axis on which the next tap column
// lies D elements on. Every thread owns one element of that axis and eight output
// channels; its loads are coalesced whatever D is.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int CO_TILE = 8;

__global__ void conv3d_flat_rows(const float* __restrict__ x, const float* __restrict__ weight,
                                 float* __restrict__ y, int CI, int CO, int H, int W, int D,
                                 int HO, int row_out) {
    // The filters of the block's channels; sized by the launch, since CI is not known here.
    extern __shared__ float filters[];

    const int co0 = blockIdx.y / HO * CO_TILE;
    const int ho = blockIdx.y % HO;
    const int column = blockIdx.x * THREADS + threadIdx.x;
    const int row_in = W * D;

    const int terms = CI * TAPS;
    for (int i = threadIdx.x; i < CO_TILE * terms; i += THREADS) {
        filters[i] = co0 + i / terms < CO ? weight[co0 * terms + i] : 0.0f;
    }
    __syncthreads();

    if (column >= row_out) {
        return;
    }

    float acc[CO_TILE] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const long long plane = (static_cast<long long>(blockIdx.z) * CI + ci) * H + ho;
        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            const float* row = x + (plane + kh) * row_in + column;
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                const float v = row[kw * D];
                const int term = ci * TAPS + kh * K + kw;
                #pragma unroll
                for (int o = 0; o < CO_TILE; ++o) {
                    acc[o] += v * filters[o * terms + term];
                }
            }
        }
    }

    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        if (co0 + o < CO) {
            const long long plane = (static_cast<long long>(blockIdx.z) * CO + co0 + o) * HO + ho;
            y[plane * row_out + column] = acc[o];
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO,
            int H, int W, int D, int HO, int WO) {
    const int row_out = WO * D;
    const int co_tiles = (CO + CO_TILE - 1) / CO_TILE;
    const int shared = CO_TILE * CI * TAPS * sizeof(float);
    dim3 grid((row_out + THREADS - 1) / THREADS, co_tiles * HO, B);
    conv3d_flat_rows<<<grid, THREADS, shared>>>(x, weight, y, CI, CO, H, W, D, HO, row_out);
}
