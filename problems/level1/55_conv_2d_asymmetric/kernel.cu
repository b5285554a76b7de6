// 2D convolution with a 3x3 window, stride 1, no padding: x[B, CI, H, W],
// weight[CO, CI, 3, 3], y[B, CO, H - 2, W - 2].
//
// Explicit im2col, one image at a time: a first kernel lays out the input of every output
// position as a column of scratch, a second multiplies by the weights. Neighbouring threads
// own neighbouring positions, so a row of the columns is read as one line; a value, once
// read, serves eight output channels.

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int OUT_PER_THREAD = 8;
static constexpr int TILE_K = 32;

__global__ void im2col(const float* __restrict__ image, float* __restrict__ columns,
                       int H, int W, int WO, int positions) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    const int k = blockIdx.y;
    if (p < positions) {
        const int ci = k / TAPS;
        const int h = p / WO + k % TAPS / K;
        const int w = p % WO + k % K;
        columns[static_cast<long long>(k) * positions + p] = image[(ci * H + h) * W + w];
    }
}

__global__ void multiply_columns(const float* __restrict__ columns,
                                 const float* __restrict__ weight, float* __restrict__ out,
                                 int CO, int terms, int positions) {
    __shared__ float taps[OUT_PER_THREAD][TILE_K];
    const int tid = threadIdx.x;
    const int p = blockIdx.x * THREADS + tid;
    const int co0 = blockIdx.y * OUT_PER_THREAD;

    float acc[OUT_PER_THREAD];
    #pragma unroll
    for (int o = 0; o < OUT_PER_THREAD; ++o) {
        acc[o] = 0.0f;
    }

    for (int k0 = 0; k0 < terms; k0 += TILE_K) {
        for (int i = tid; i < OUT_PER_THREAD * TILE_K; i += THREADS) {
            const int co = co0 + i / TILE_K;
            const int k = k0 + i % TILE_K;
            taps[i / TILE_K][i % TILE_K] =
                (co < CO && k < terms) ? weight[co * terms + k] : 0.0f;
        }
        __syncthreads();
        if (p < positions) {
            const int count = min(TILE_K, terms - k0);
            for (int k = 0; k < count; ++k) {
                const float v = columns[static_cast<long long>(k0 + k) * positions + p];
                #pragma unroll
                for (int o = 0; o < OUT_PER_THREAD; ++o) {
                    acc[o] += taps[o][k] * v;
                }
            }
        }
        __syncthreads();
    }

    if (p < positions) {
        #pragma unroll
        for (int o = 0; o < OUT_PER_THREAD; ++o) {
            if (co0 + o < CO) {
                out[static_cast<long long>(co0 + o) * positions + p] = acc[o];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    const int terms = CI * TAPS;
    const int positions = HO * WO;
    // One image's columns, used again for the next one.
    float* columns = scratch<float>(static_cast<long long>(terms) * positions);
    const int position_blocks = (positions + THREADS - 1) / THREADS;
    dim3 column_grid(position_blocks, terms);
    dim3 product_grid(position_blocks, (CO + OUT_PER_THREAD - 1) / OUT_PER_THREAD);
    for (int n = 0; n < B; ++n) {
        const float* image = x + static_cast<long long>(n) * CI * H * W;
        float* out = y + static_cast<long long>(n) * CO * positions;
        im2col<<<column_grid, THREADS>>>(image, columns, H, W, WO, positions);
        multiply_columns<<<product_grid, THREADS>>>(columns, weight, out, CO, terms, positions);
    }
}
