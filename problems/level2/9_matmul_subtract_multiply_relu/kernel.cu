// y = relu((x * weight^T + bias - subtract) * multiply) in one kernel.
//
// Both operands have K contiguous, so a thread stages four neighbouring k at a time as one
// float4 and the shared tiles keep that layout: a row is BK floats and a little padding.
// A block of 64 threads makes a 16x16 tile, each thread a 2x2 part of it.

static constexpr int BM = 16;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int VEC = 4;
static constexpr int SIDE = 8;
static constexpr int THREADS = SIDE * SIDE;
// Four floats of padding keep a row 16-byte aligned and shift its banks.
static constexpr int PITCH = BK + VEC;

// Four neighbouring k of one row; zeros beyond the edges add nothing to the sums.
__device__ __forceinline__ float4 load_k4(const float* __restrict__ m, int row, int rows, int k,
                                          int K) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= rows) {
        return v;
    }
    const float* p = m + static_cast<long long>(row) * K + k;
    if (K % VEC == 0) {
        if (k < K) {
            v = *reinterpret_cast<const float4*>(p);
        }
        return v;
    }
    v.x = k < K ? p[0] : 0.0f;
    v.y = k + 1 < K ? p[1] : 0.0f;
    v.z = k + 2 < K ? p[2] : 0.0f;
    v.w = k + 3 < K ? p[3] : 0.0f;
    return v;
}

__global__ void gemm_subtract_multiply_relu(const float* __restrict__ x,
                                            const float* __restrict__ weight,
                                            const float* __restrict__ bias,
                                            float* __restrict__ y, int B, int K, int N,
                                            float subtract_value, float multiply_value) {
    __shared__ __align__(16) float tile_x[BM * PITCH];
    __shared__ __align__(16) float tile_w[BN * PITCH];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * SIDE + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};

    for (int k0 = 0; k0 < K; k0 += BK) {
        #pragma unroll
        for (int i = tid; i < BM * BK / VEC; i += THREADS) {
            const int r = i / (BK / VEC);
            const int k = i % (BK / VEC) * VEC;
            *reinterpret_cast<float4*>(tile_x + r * PITCH + k) = load_k4(x, row0 + r, B, k0 + k, K);
            *reinterpret_cast<float4*>(tile_w + r * PITCH + k) =
                load_k4(weight, col0 + r, N, k0 + k, K);
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < BK; k += VEC) {
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 a =
                    *reinterpret_cast<const float4*>(tile_x + (ty + i * SIDE) * PITCH + k);
                #pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const float4 b =
                        *reinterpret_cast<const float4*>(tile_w + (tx + j * SIDE) * PITCH + k);
                    acc[i][j] += a.x * b.x;
                    acc[i][j] += a.y * b.y;
                    acc[i][j] += a.z * b.z;
                    acc[i][j] += a.w * b.w;
                }
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + ty + i * SIDE;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int col = col0 + tx + j * SIDE;
            if (row < B && col < N) {
                const float v = (acc[i][j] + bias[col] - subtract_value) * multiply_value;
                y[static_cast<long long>(row) * N + col] = fmaxf(v, 0.0f);
            }
        }
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int K, int N, float subtract_value, float multiply_value) {
    dim3 block(SIDE, SIDE);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM);
    gemm_subtract_multiply_relu<<<grid, block>>>(x, weight, bias, y, B, K, N, subtract_value,
                                                 multiply_value);
}
