// m = mean over features of (x * weight^T + bias - subtract); y = gelu(m) + x.
//
// Blocks take eight features and two rows: a warp's lanes share K out, and every weight
// that is loaded serves both rows. The features' sums stay in the lanes and meet once, in a partial
// sum per block. The second kernel adds a row's partial sums, in every block anew, and adds the
// result to a stretch of the row. The LogSumExp of one number is left out.

static constexpr int WARP = 32;
static constexpr int ROWS = 2;
static constexpr int FEATURES = 8;
static constexpr int WARPS = 4;
static constexpr int THREADS = 256;
static constexpr int STRETCH = 1024;
static constexpr unsigned FULL_MASK = 0xffffffffu;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

__global__ void feature_sums(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, const float* __restrict__ subtract,
                             float* __restrict__ partial, int B, int K, int N) {
    __shared__ float warp_sums[WARPS][ROWS];
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int row0 = blockIdx.y * ROWS;
    // A second row that does not exist repeats the first and is not stored.
    const int row1 = min(row0 + 1, B - 1);
    const float* first = x + static_cast<long long>(row0) * K;
    const float* second = x + static_cast<long long>(row1) * K;
    const int n0 = blockIdx.x * FEATURES;
    const int last = min(n0 + FEATURES, N);

    float sum0 = 0.0f;
    float sum1 = 0.0f;
    for (int n = n0 + warp; n < last; n += WARPS) {
        const float* w = weight + static_cast<long long>(n) * K;
        for (int k = lane; k < K; k += WARP) {
            const float v = w[k];
            sum0 += first[k] * v;
            sum1 += second[k] * v;
        }
        if (lane == 0) {
            const float constant = bias[n] - subtract[n];
            sum0 += constant;
            sum1 += constant;
        }
    }
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        sum0 += __shfl_down_sync(FULL_MASK, sum0, offset);
        sum1 += __shfl_down_sync(FULL_MASK, sum1, offset);
    }
    if (lane == 0) {
        warp_sums[warp][0] = sum0;
        warp_sums[warp][1] = sum1;
    }
    __syncthreads();
    if (warp == 0 && lane < ROWS && row0 + lane < B) {
        float total = 0.0f;
        #pragma unroll
        for (int i = 0; i < WARPS; ++i) {
            total += warp_sums[i][lane];
        }
        partial[static_cast<long long>(row0 + lane) * gridDim.x + blockIdx.x] = total;
    }
}

__global__ void gelu_residual(const float* __restrict__ x, const float* __restrict__ partial,
                              float* __restrict__ y, int K, int N, int parts) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    float sum = 0.0f;
    for (int i = tid; i < parts; i += THREADS) {
        sum += partial[static_cast<long long>(blockIdx.y) * parts + i];
    }
    sums[tid] = sum;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
    const float mean = sums[0] / N;
    const float added = 0.5f * mean * (1.0f + erff(mean * INV_SQRT_2));

    const long long row = static_cast<long long>(blockIdx.y) * K;
    const int last = min((blockIdx.x + 1) * STRETCH, K);
    for (int k = blockIdx.x * STRETCH + tid; k < last; k += THREADS) {
        y[row + k] = x[row + k] + added;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* subtract,
            float* y, int B, int K, int N) {
    const int parts = (N + FEATURES - 1) / FEATURES;
    float* partial = scratch<float>(static_cast<long long>(B) * parts);
    dim3 block(WARP, WARPS);
    dim3 grid(parts, (B + ROWS - 1) / ROWS);
    feature_sums<<<grid, block>>>(x, weight, bias, subtract, partial, B, K, N);
    dim3 out_grid((K + STRETCH - 1) / STRETCH, B);
    gelu_residual<<<out_grid, THREADS>>>(x, partial, y, K, N, parts);
}
