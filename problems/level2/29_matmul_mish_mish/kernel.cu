// y = mish(mish(x * weight^T + bias)) in one kernel.
//
// Tiles are double buffered: while the sums of one step are made, the next step's values
// are on their way into registers, and they are stored to the other buffer afterwards.
// Each step then costs one barrier, and its loads are hidden behind arithmetic.

static constexpr int TILE = 16;
static constexpr int BK = 32;
static constexpr int COLS = 8;
static constexpr int THREADS = TILE * COLS;
static constexpr int PER_THREAD = TILE * BK / THREADS;

__device__ __forceinline__ float mish(float v) {
    // softplus without overflow for large v.
    const float softplus = fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v)));
    return v * tanhf(softplus);
}

__global__ void gemm_mish_mish(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int B,
                               int K, int N) {
    __shared__ float tile_x[2][TILE][BK + 1];
    __shared__ float tile_w[2][TILE][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * COLS + tx;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    float next_x[PER_THREAD];
    float next_w[PER_THREAD];
    auto fetch = [&](int k0) {
        #pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int at = tid + i * THREADS;
            const int r = at / BK;
            const int k = k0 + at % BK;
            const bool in_x = row0 + r < B && k < K;
            const bool in_w = col0 + r < N && k < K;
            next_x[i] = in_x ? x[static_cast<long long>(row0 + r) * K + k] : 0.0f;
            next_w[i] = in_w ? weight[static_cast<long long>(col0 + r) * K + k] : 0.0f;
        }
    };
    auto store = [&](int buffer) {
        #pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int at = tid + i * THREADS;
            tile_x[buffer][at / BK][at % BK] = next_x[i];
            tile_w[buffer][at / BK][at % BK] = next_w[i];
        }
    };

    float acc0 = 0.0f;
    float acc1 = 0.0f;
    int now = 0;
    fetch(0);
    store(now);
    __syncthreads();
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) {
            fetch(k0 + BK);
        }
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float a = tile_x[now][ty][k];
            acc0 += a * tile_w[now][tx][k];
            acc1 += a * tile_w[now][tx + COLS][k];
        }
        if (more) {
            store(now ^ 1);
            __syncthreads();
            now ^= 1;
        }
    }

    const int row = row0 + ty;
    const int col = col0 + tx;
    if (row < B) {
        float* out = y + static_cast<long long>(row) * N;
        if (col < N) {
            out[col] = mish(mish(acc0 + bias[col]));
        }
        if (col + COLS < N) {
            out[col + COLS] = mish(mish(acc1 + bias[col + COLS]));
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(COLS, TILE);
    dim3 grid((N + TILE - 1) / TILE, (B + TILE - 1) / TILE);
    gemm_mish_mish<<<grid, block>>>(x, weight, bias, y, B, K, N);
}
