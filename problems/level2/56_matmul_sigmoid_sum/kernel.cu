// y[b] = sum over n of sigmoid(x[b] . weight[n] + bias[n]).
//
// A block makes four features of four rows: 16 dot products, each by a group of eight
// lanes that share a stretch of K. The groups' sigmoids are summed per row by shuffles and
// added to y atomically; y is cleared before.

static constexpr int ROWS = 4;
static constexpr int FEATURES = 4;
static constexpr int LANES = 8;
static constexpr int THREADS = ROWS * FEATURES * LANES;
static constexpr int BK = 128;
static constexpr int PITCH = BK + 1;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__global__ void linear_sigmoid_sum(const float* __restrict__ x, const float* __restrict__ weight,
                                   const float* __restrict__ bias, float* __restrict__ y, int B,
                                   int K, int N) {
    __shared__ float tile_x[ROWS][PITCH];
    __shared__ float tile_w[FEATURES][PITCH];
    __shared__ float sigmoids[ROWS][FEATURES];

    const int tid = threadIdx.x;
    const int lane = tid % LANES;
    const int f = tid / LANES % FEATURES;
    const int r = tid / (LANES * FEATURES);
    const int row0 = blockIdx.y * ROWS;
    const int n0 = blockIdx.x * FEATURES;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(n0) * K;

    float dot = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < ROWS; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < FEATURES; i += THREADS / BK) {
            tile_w[i][tid % BK] = (n0 + i < N && k < K) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = lane; i < BK; i += LANES) {
            dot += tile_x[r][i] * tile_w[f][i];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        dot += __shfl_xor_sync(FULL_MASK, dot, offset);
    }
    if (lane == 0) {
        const bool exists = n0 + f < N;
        sigmoids[r][f] = exists ? 1.0f / (1.0f + expf(-(dot + bias[n0 + f]))) : 0.0f;
    }
    __syncthreads();
    if (tid < ROWS && row0 + tid < B) {
        float sum = 0.0f;
        #pragma unroll
        for (int i = 0; i < FEATURES; ++i) {
            sum += sigmoids[tid][i];
        }
        atomicAdd(&y[row0 + tid], sum);
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N) {
    cudaMemset(y, 0, B * sizeof(float));
    dim3 grid((N + FEATURES - 1) / FEATURES, (B + ROWS - 1) / ROWS);
    linear_sigmoid_sum<<<grid, THREADS>>>(x, weight, bias, y, B, K, N);
}
