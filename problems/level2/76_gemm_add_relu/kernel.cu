// y = relu(x * weight^T + bias), one output a thread.
//
// The textbook kernel with one twist: tiles hold pairs of neighbouring k as float2, so a
// step of the inner loop reads two pairs and makes two multiply-adds.

static constexpr int BM = 8;
static constexpr int BN = 16;
static constexpr int PAIRS = 16;
static constexpr int BK = 2 * PAIRS;
static constexpr int THREADS = BM * BN;

// Elements k and k + 1 of a row, zeros beyond its end.
__device__ __forceinline__ float2 load_pair(const float* row, int k, int K) {
    return make_float2(k < K ? row[k] : 0.0f, k + 1 < K ? row[k + 1] : 0.0f);
}

__global__ void gemm_add_relu(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int B,
                              int K, int N) {
    __shared__ float2 tile_x[BM][PAIRS + 1];
    __shared__ float2 tile_w[BN][PAIRS + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * BN + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;
    const float2 none = make_float2(0.0f, 0.0f);

    float even = 0.0f;
    float odd = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int pair = tid % PAIRS;
        const int r = tid / PAIRS;
        const int k = k0 + 2 * pair;
        tile_x[r][pair] = row0 + r < B ? load_pair(x_tile + r * K, k, K) : none;
        #pragma unroll
        for (int c = r; c < BN; c += THREADS / PAIRS) {
            tile_w[c][pair] = col0 + c < N ? load_pair(w_tile + c * K, k, K) : none;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            const float2 a = tile_x[ty][i];
            const float2 b = tile_w[tx][i];
            even += a.x * b.x;
            odd += a.y * b.y;
        }
        __syncthreads();
    }

    const int row = row0 + ty;
    const int col = col0 + tx;
    if (row < B && col < N) {
        y[static_cast<long long>(row) * N + col] = fmaxf(even + odd + bias[col], 0.0f);
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    dim3 block(BN, BM);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_add_relu<<<grid, block>>>(x, weight, bias, y, B, K, N);
}
