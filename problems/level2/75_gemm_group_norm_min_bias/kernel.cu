// m[b] = min over features of group norm(x * weight^T + linear_bias), groups of 16;
// y[0, n, b, 0] = m[b] + bias[n].
//
// Each thread keeps two of a group's sixteen columns, so eight lanes share a row's group:
// mean, variance and the tile's minimum are found among them by shuffles, and only one
// number per row and group is stored. The second kernel takes the minimum over a row's
// groups and writes the outer sum, features slow and rows fast.

static constexpr int GROUP = 16;
static constexpr int LANES = GROUP / 2;
static constexpr int ROWS = 8;
static constexpr int BK = 32;
static constexpr int THREADS = LANES * ROWS;
static constexpr int OUT_THREADS = 128;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__global__ void gemm_group_min(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ linear_bias,
                               const float* __restrict__ gamma, const float* __restrict__ beta,
                               float* __restrict__ minima, int B, int K, float eps) {
    __shared__ float tile_x[ROWS][BK + 1];
    __shared__ float tile_w[GROUP][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * LANES + tx;
    const int row0 = blockIdx.y * ROWS;
    const int col0 = blockIdx.x * GROUP;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float first = 0.0f;
    float second = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < ROWS; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < GROUP; i += THREADS / BK) {
            tile_w[i][tid % BK] = k < K ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float a = tile_x[ty][i];
            first += a * tile_w[tx][i];
            second += a * tile_w[tx + LANES][i];
        }
        __syncthreads();
    }

    const int c0 = col0 + tx;
    const int c1 = c0 + LANES;
    first += linear_bias[c0];
    second += linear_bias[c1];
    float sum = first + second;
    #pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(FULL_MASK, sum, offset);
    }
    first -= sum / GROUP;
    second -= sum / GROUP;
    float squares = first * first + second * second;
    #pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        squares += __shfl_xor_sync(FULL_MASK, squares, offset);
    }
    const float inv_std = rsqrtf(squares / GROUP + eps);
    float least = fminf(first * inv_std * gamma[c0] + beta[c0],
                        second * inv_std * gamma[c1] + beta[c1]);
    #pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        least = fminf(least, __shfl_xor_sync(FULL_MASK, least, offset));
    }
    if (tx == 0 && row0 + ty < B) {
        minima[static_cast<long long>(blockIdx.x) * B + row0 + ty] = least;
    }
}

__global__ void outer_sum(const float* __restrict__ minima, const float* __restrict__ bias,
                          float* __restrict__ y, int B, int G, int N) {
    const int row = blockIdx.x * OUT_THREADS + threadIdx.x;
    if (row >= B) {
        return;
    }
    float least = minima[row];
    for (int g = 1; g < G; ++g) {
        least = fminf(least, minima[static_cast<long long>(g) * B + row]);
    }
    for (int n = blockIdx.y; n < N; n += gridDim.y) {
        y[static_cast<long long>(n) * B + row] = least + bias[n];
    }
}

void launch(const float* x, const float* weight, const float* linear_bias, const float* gamma,
            const float* beta, const float* bias, float* y, int B, int K, int G, int N,
            float eps) {
    float* minima = scratch<float>(static_cast<long long>(G) * B);
    dim3 block(LANES, ROWS);
    dim3 grid(G, (B + ROWS - 1) / ROWS);
    gemm_group_min<<<grid, block>>>(x, weight, linear_bias, gamma, beta, minima, B, K, eps);
    dim3 out_grid((B + OUT_THREADS - 1) / OUT_THREADS, min(N, 16));
    outer_sum<<<out_grid, OUT_THREADS>>>(minima, bias, y, B, G, N);
}
