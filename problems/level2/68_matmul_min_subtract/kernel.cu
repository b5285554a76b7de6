// y = min(x * weight^T + bias, constant) - constant in one kernel.
//
// A warp makes a tile of eight rows by four columns without shared memory: its lanes split
// K, each lane keeps all 32 partial sums, twelve loads feed 32 multiply-adds. The sums are
// then reduced and scattered at once: in five steps a lane gives half of what it holds to
// a partner and adds what it gets, until each lane owns one finished output.

static constexpr int WARP = 32;
static constexpr int WARPS = 2;
static constexpr int BM = 8;
static constexpr int BN = 4;
static constexpr int OUTPUTS = BM * BN;
static constexpr unsigned FULL_MASK = 0xffffffffu;

// After this, lane i holds in sums[0] the warp's sum of what was sums[i].
__device__ __forceinline__ void reduce_scatter(float (&sums)[OUTPUTS], int lane) {
    #pragma unroll
    for (int half = OUTPUTS / 2; half > 0; half /= 2) {
        const bool upper = (lane & half) != 0;
        #pragma unroll
        for (int i = 0; i < half; ++i) {
            const float give = upper ? sums[i] : sums[i + half];
            const float own = upper ? sums[i + half] : sums[i];
            sums[i] = own + __shfl_xor_sync(FULL_MASK, give, half);
        }
    }
}

__global__ void gemm_min_subtract(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias,
                                  const float* __restrict__ constant, float* __restrict__ y,
                                  int B, int K, int N) {
    const int lane = threadIdx.x;
    const int row0 = (blockIdx.y * WARPS + threadIdx.y) * BM;
    const int col0 = blockIdx.x * BN;
    if (row0 >= B) {
        return;
    }
    // Rows and columns beyond the last repeat it; their sums are not stored.
    const float* rows[BM];
    const float* cols[BN];
    #pragma unroll
    for (int i = 0; i < BM; ++i) {
        rows[i] = x + static_cast<long long>(min(row0 + i, B - 1)) * K;
    }
    #pragma unroll
    for (int j = 0; j < BN; ++j) {
        cols[j] = weight + static_cast<long long>(min(col0 + j, N - 1)) * K;
    }

    float sums[OUTPUTS] = {};
    for (int k = lane; k < K; k += WARP) {
        float w[BN];
        #pragma unroll
        for (int j = 0; j < BN; ++j) {
            w[j] = cols[j][k];
        }
        #pragma unroll
        for (int i = 0; i < BM; ++i) {
            const float v = rows[i][k];
            #pragma unroll
            for (int j = 0; j < BN; ++j) {
                sums[i * BN + j] += v * w[j];
            }
        }
    }
    reduce_scatter(sums, lane);

    const int row = row0 + lane / BN;
    const int col = col0 + lane % BN;
    if (row < B && col < N) {
        const float limit = *constant;
        y[static_cast<long long>(row) * N + col] = fminf(sums[0] + bias[col], limit) - limit;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* constant,
            float* y, int B, int K, int N) {
    dim3 block(WARP, WARPS);
    dim3 grid((N + BN - 1) / BN, (B + WARPS * BM - 1) / (WARPS * BM));
    gemm_min_subtract<<<grid, block>>>(x, weight, bias, constant, y, B, K, N);
}
