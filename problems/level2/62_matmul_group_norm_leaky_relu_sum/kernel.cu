// y = 2 * leaky_relu(group norm of (x * weight^T + bias)), groups of 16 features.
//
// A tile is exactly one group wide, so a row of the tile is a whole group: the 16 lanes
// that hold it find mean and variance by shuffles among themselves, and nothing but the
// result leaves the block.

static constexpr int GROUP = 16;
static constexpr int ROWS = 8;
static constexpr int BK = 32;
static constexpr int THREADS = GROUP * ROWS;
static constexpr unsigned FULL_MASK = 0xffffffffu;

// The sum over the 16 lanes that share a row.
__device__ __forceinline__ float group_sum(float v) {
    #pragma unroll
    for (int offset = GROUP / 2; offset > 0; offset /= 2) {
        v += __shfl_xor_sync(FULL_MASK, v, offset);
    }
    return v;
}

__global__ void gemm_group_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, const float* __restrict__ gamma,
                                const float* __restrict__ beta, float* __restrict__ y, int B,
                                int K, int N, float eps, float negative_slope) {
    __shared__ float tile_x[ROWS][BK + 1];
    __shared__ float tile_w[GROUP][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * GROUP + tx;
    const int row0 = blockIdx.y * ROWS;
    const int col0 = blockIdx.x * GROUP;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < ROWS; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < GROUP; i += THREADS / BK) {
            // The number of features is a multiple of the group.
            tile_w[i][tid % BK] = k < K ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            sum += tile_x[ty][i] * tile_w[tx][i];
        }
        __syncthreads();
    }

    const int col = col0 + tx;
    const float h = sum + bias[col];
    const float mean = group_sum(h) / GROUP;
    const float d = h - mean;
    const float inv_std = rsqrtf(group_sum(d * d) / GROUP + eps);
    const float v = d * inv_std * gamma[col] + beta[col];
    const float activated = v > 0.0f ? v : v * negative_slope;
    // Rows beyond the last took part in the shuffles all the same.
    if (row0 + ty < B) {
        y[static_cast<long long>(row0 + ty) * N + col] = activated + activated;
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* gamma,
            const float* beta, float* y, int B, int K, int G, int N, float eps,
            float negative_slope) {
    dim3 block(GROUP, ROWS);
    dim3 grid(G, (B + ROWS - 1) / ROWS);
    gemm_group_norm<<<grid, block>>>(x, weight, bias, gamma, beta, y, B, K, N, eps,
                                     negative_slope);
}
