// h = x * weight^T + bias; y = relu(gelu(batch norm of h over the rows)).
//
// The batch is long, so a column's statistics are shared out: every chunk of 16 rows gives
// a mean and a sum of squared deviations, a second kernel merges a column's chunks by
// Chan's formula, and the last one normalises y, which held h so far, in place.

static constexpr int BM = 32;
static constexpr int BN = 8;
static constexpr int BK = 32;
static constexpr int THREADS = 128;
static constexpr int TM = BM * BN / THREADS;
static constexpr int CHUNK = 16;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

// Thread (column, row group): every thread sums two rows of one column.
__global__ void gemm_bias(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ h, int B, int K,
                          int N) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];

    const int tid = threadIdx.x;
    const int c = tid % BN;
    const int r = tid / BN;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < BM; i += THREADS / BK) {
            tile_x[i][tid % BK] =
                (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < BN; i += THREADS / BK) {
            tile_w[i][tid % BK] =
                (col0 + i < N && k < K) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float w = tile_w[c][i];
            #pragma unroll
            for (int m = 0; m < TM; ++m) {
                acc[m] += tile_x[r + m * (BM / TM)][i] * w;
            }
        }
        __syncthreads();
    }
    #pragma unroll
    for (int m = 0; m < TM; ++m) {
        const int row = row0 + r + m * (BM / TM);
        if (row < B && col0 + c < N) {
            h[static_cast<long long>(row) * N + col0 + c] = acc[m] + bias[col0 + c];
        }
    }
}

__global__ void chunk_moments(const float* __restrict__ h, float* __restrict__ means,
                              float* __restrict__ m2s, int B, int N) {
    const int col = blockIdx.x * THREADS + threadIdx.x;
    if (col >= N) {
        return;
    }
    const int first = blockIdx.y * CHUNK;
    const int count = min(CHUNK, B - first);
    const float* in = h + static_cast<long long>(first) * N + col;

    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
        sum += in[static_cast<long long>(i) * N];
    }
    const float mean = sum / count;
    float m2 = 0.0f;
    for (int i = 0; i < count; ++i) {
        const float d = in[static_cast<long long>(i) * N] - mean;
        m2 += d * d;
    }
    means[static_cast<long long>(blockIdx.y) * N + col] = mean;
    m2s[static_cast<long long>(blockIdx.y) * N + col] = m2;
}

__global__ void merge_moments(const float* __restrict__ means, const float* __restrict__ m2s,
                              float* __restrict__ mean, float* __restrict__ inv_std, int B, int N,
                              int chunks, float eps) {
    const int col = blockIdx.x * THREADS + threadIdx.x;
    if (col >= N) {
        return;
    }
    float all_mean = means[col];
    float all_m2 = m2s[col];
    float count = min(CHUNK, B);
    for (int chunk = 1; chunk < chunks; ++chunk) {
        const float more = min(CHUNK, B - chunk * CHUNK);
        const float delta = means[static_cast<long long>(chunk) * N + col] - all_mean;
        const float share = more / (count + more);
        all_mean += delta * share;
        all_m2 += m2s[static_cast<long long>(chunk) * N + col] + delta * delta * count * share;
        count += more;
    }
    mean[col] = all_mean;
    inv_std[col] = rsqrtf(all_m2 / B + eps);
}

__global__ void normalise_gelu_relu(float* y, const float* __restrict__ mean,
                                    const float* __restrict__ inv_std,
                                    const float* __restrict__ gamma,
                                    const float* __restrict__ beta, long long n, int N) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n) {
        const int col = i % N;
        const float v = (y[i] - mean[col]) * inv_std[col] * gamma[col] + beta[col];
        y[i] = fmaxf(0.5f * v * (1.0f + erff(v * INV_SQRT_2)), 0.0f);
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int K, int N, float eps) {
    const int chunks = (B + CHUNK - 1) / CHUNK;
    const int col_blocks = (N + THREADS - 1) / THREADS;
    const long long n = static_cast<long long>(B) * N;
    float* means = scratch<float>(static_cast<long long>(chunks) * N);
    float* m2s = scratch<float>(static_cast<long long>(chunks) * N);
    float* mean = scratch<float>(N);
    float* inv_std = scratch<float>(N);

    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_bias<<<grid, THREADS>>>(x, weight, bias, y, B, K, N);
    dim3 chunk_grid(col_blocks, chunks);
    chunk_moments<<<chunk_grid, THREADS>>>(y, means, m2s, B, N);
    merge_moments<<<col_blocks, THREADS>>>(means, m2s, mean, inv_std, B, N, chunks, eps);
    normalise_gelu_relu<<<(n + THREADS - 1) / THREADS, THREADS>>>(y, mean, inv_std, gamma, beta,
                                                                  n, N);
}
