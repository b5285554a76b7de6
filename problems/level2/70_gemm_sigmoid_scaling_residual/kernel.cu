// h = x * weight^T + bias; y = scaling * sigmoid(h) + h.
//
// A thread makes four neighbouring columns of two rows. The weight tile is transposed while
// it is staged, so the four columns' weights of one k are one float4, and a load of x serves
// four products.

static constexpr int BM = 8;
static constexpr int BN = 32;
static constexpr int BK = 16;
static constexpr int VEC = 4;
static constexpr int TX = BN / VEC;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;
// Keeps rows of the transposed tile 16-byte aligned.
static constexpr int PITCH = BN + VEC;

__device__ __forceinline__ float epilogue(float h, float scaling_factor) {
    return scaling_factor / (1.0f + expf(-h)) + h;
}

__global__ void gemm_sigmoid_residual(const float* __restrict__ x,
                                      const float* __restrict__ weight,
                                      const float* __restrict__ bias, float* __restrict__ y,
                                      int B, int K, int N, float scaling_factor) {
    __shared__ float tile_x[BM][BK];
    __shared__ __align__(16) float tile_w[BK * PITCH];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float4 upper = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 lower = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < BM; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < K) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < BN; i += THREADS / BK) {
            tile_w[tid % BK * PITCH + i] = (col0 + i < N && k < K) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float4 w = *reinterpret_cast<const float4*>(tile_w + i * PITCH + tx * VEC);
            const float a = tile_x[ty][i];
            const float b = tile_x[ty + TY][i];
            upper.x += a * w.x;
            upper.y += a * w.y;
            upper.z += a * w.z;
            upper.w += a * w.w;
            lower.x += b * w.x;
            lower.y += b * w.y;
            lower.z += b * w.z;
            lower.w += b * w.w;
        }
        __syncthreads();
    }

    const float sums[2][VEC] = {{upper.x, upper.y, upper.z, upper.w},
                                {lower.x, lower.y, lower.z, lower.w}};
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + ty + i * TY;
        #pragma unroll
        for (int j = 0; j < VEC; ++j) {
            const int col = col0 + tx * VEC + j;
            if (row < B && col < N) {
                y[static_cast<long long>(row) * N + col] =
                    epilogue(sums[i][j] + bias[col], scaling_factor);
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scaling_factor) {
    dim3 block(TX, TY);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_sigmoid_residual<<<grid, block>>>(x, weight, bias, y, B, K, N, scaling_factor);
}
