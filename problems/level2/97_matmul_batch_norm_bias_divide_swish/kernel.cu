// y = swish((batch norm(x * weight^T + linear_bias) + bias) / divisor), the norm over rows
// in training mode.
//
// A tile of h also passes through shared memory, where its columns' means and squared
// deviations are found: one pair per column and block of rows is stored. The second kernel
// merges them by Chan's formula and finishes y, which holds h, in place.

static constexpr int BM = 16;
static constexpr int BN = 8;
static constexpr int BK = 32;
static constexpr int THREADS = BM * BN;
static constexpr int COLS = 8;
static constexpr int ROWS = 16;

__global__ void gemm_moments(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ linear_bias, float* __restrict__ h,
                             float* __restrict__ means, float* __restrict__ m2s, int B, int K,
                             int N) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];
    __shared__ float values[BM][BN];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * BN + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < BM; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < BN; i += THREADS / BK) {
            tile_w[i][tid % BK] = (col0 + i < N && k < K) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            sum += tile_x[ty][i] * tile_w[tx][i];
        }
        __syncthreads();
    }

    const int row = row0 + ty;
    const int col = col0 + tx;
    if (row < B && col < N) {
        sum += linear_bias[col];
        h[static_cast<long long>(row) * N + col] = sum;
    }
    values[ty][tx] = sum;
    __syncthreads();
    if (ty == 0 && col < N) {
        const int count = min(BM, B - row0);
        float total = 0.0f;
        for (int i = 0; i < count; ++i) {
            total += values[i][tx];
        }
        const float mean = total / count;
        float m2 = 0.0f;
        for (int i = 0; i < count; ++i) {
            const float d = values[i][tx] - mean;
            m2 += d * d;
        }
        means[static_cast<long long>(blockIdx.y) * N + col] = mean;
        m2s[static_cast<long long>(blockIdx.y) * N + col] = m2;
    }
}

__global__ void norm_swish(float* y, const float* __restrict__ means,
                           const float* __restrict__ m2s, const float* __restrict__ gamma,
                           const float* __restrict__ beta, const float* __restrict__ bias, int B,
                           int N, int chunks, float eps, float divide_value) {
    const int col = blockIdx.x * COLS + threadIdx.x;
    if (col >= N) {
        return;
    }
    float mean = means[col];
    float m2 = m2s[col];
    float count = min(BM, B);
    for (int chunk = 1; chunk < chunks; ++chunk) {
        const float more = min(BM, B - chunk * BM);
        const float delta = means[static_cast<long long>(chunk) * N + col] - mean;
        const float share = more / (count + more);
        mean += delta * share;
        m2 += m2s[static_cast<long long>(chunk) * N + col] + delta * delta * count * share;
        count += more;
    }
    const float inv_std = rsqrtf(m2 / B + eps);
    const float shift = *bias;

    for (int row = blockIdx.y * ROWS + threadIdx.y; row < B; row += gridDim.y * ROWS) {
        float* out = y + static_cast<long long>(row) * N + col;
        const float v = (*out - mean) * inv_std * gamma[col] + beta[col];
        const float h = (v + shift) / divide_value;
        *out = h / (1.0f + expf(-h));
    }
}

void launch(const float* x, const float* weight, const float* linear_bias, const float* gamma,
            const float* beta, const float* bias, float* y, int B, int K, int N, float eps,
            float divide_value) {
    const int chunks = (B + BM - 1) / BM;
    float* means = scratch<float>(static_cast<long long>(chunks) * N);
    float* m2s = scratch<float>(static_cast<long long>(chunks) * N);
    dim3 block(BN, BM);
    dim3 grid((N + BN - 1) / BN, chunks);
    gemm_moments<<<grid, block>>>(x, weight, linear_bias, y, means, m2s, B, K, N);
    dim3 norm_block(COLS, ROWS);
    dim3 norm_grid((N + COLS - 1) / COLS, min(chunks, 8));
    norm_swish<<<norm_grid, norm_block>>>(y, means, m2s, gamma, beta, bias, B, N, chunks, eps,
                                          divide_value);
}
