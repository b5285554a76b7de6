// Max pooling of x[B, C, L] with a window of 8, stride 1, padding 4, dilation 3.
//
// Every input belongs to eight windows, so a block stages its outputs' common input
// segment in shared memory once.

static constexpr int KERNEL = 8;
static constexpr int PAD = 4;
static constexpr int DILATION = 3;
static constexpr int TILE = 256;
static constexpr int SEGMENT = TILE + DILATION * (KERNEL - 1);

__global__ void max_pool_segments(const float* __restrict__ x, float* __restrict__ y,
                                  int L, int LO) {
    __shared__ float segment[SEGMENT];
    const int tid = threadIdx.x;
    const int out0 = blockIdx.x * TILE;
    const float* in = x + static_cast<long long>(blockIdx.y) * L;

    for (int i = tid; i < SEGMENT; i += TILE) {
        const int at = out0 + i - PAD;
        // The padding never wins: it is -inf, not zero.
        segment[i] = (at >= 0 && at < L) ? in[at] : -INFINITY;
    }
    __syncthreads();

    const int lo = out0 + tid;
    if (lo < LO) {
        float best = -INFINITY;
        #pragma unroll
        for (int k = 0; k < KERNEL; ++k) {
            const float v = segment[tid + k * DILATION];
            // A NaN in the window is the result, as in PyTorch.
            if (v > best || v != v) {
                best = v;
            }
        }
        y[static_cast<long long>(blockIdx.y) * LO + lo] = best;
    }
}

void launch(const float* x, float* y, int B, int C, int L, int LO) {
    dim3 grid((LO + TILE - 1) / TILE, B * C);
    max_pool_segments<<<grid, TILE>>>(x, y, L, LO);
}
