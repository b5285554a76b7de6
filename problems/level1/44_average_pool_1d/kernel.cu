// Average pooling of x[B, C, L] with a window of 8, stride 1, padding 4.
//
// A window of eight is two windows of four, which are two windows of two: three additions
// an output instead of seven, through shared memory.

static constexpr int KERNEL = 8;
static constexpr int PAD = 4;
static constexpr int TILE = 256;
static constexpr int SEGMENT = TILE + KERNEL - 1;

__global__ void average_pool_doubling(const float* __restrict__ x, float* __restrict__ y,
                                      int L, int LO) {
    __shared__ float ones[SEGMENT];
    __shared__ float pairs[SEGMENT];
    __shared__ float fours[SEGMENT];
    const int tid = threadIdx.x;
    const int out0 = blockIdx.x * TILE;
    const float* in = x + static_cast<long long>(blockIdx.y) * L;

    for (int i = tid; i < SEGMENT; i += TILE) {
        const int at = out0 + i - PAD;
        ones[i] = (at >= 0 && at < L) ? in[at] : 0.0f;
    }
    __syncthreads();
    // Each level is as much shorter as its windows are longer.
    for (int i = tid; i < SEGMENT - 1; i += TILE) {
        pairs[i] = ones[i] + ones[i + 1];
    }
    __syncthreads();
    for (int i = tid; i < SEGMENT - 3; i += TILE) {
        fours[i] = pairs[i] + pairs[i + 2];
    }
    __syncthreads();

    const int lo = out0 + tid;
    if (lo < LO) {
        const float sum = fours[tid] + fours[tid + 4];
        y[static_cast<long long>(blockIdx.y) * LO + lo] = sum * (1.0f / KERNEL);
    }
}

void launch(const float* x, float* y, int B, int C, int L, int LO) {
    dim3 grid((LO + TILE - 1) / TILE, B * C);
    average_pool_doubling<<<grid, TILE>>>(x, y, L, LO);
}
