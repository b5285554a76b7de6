// y = clamp(gelu(tanh(swish(x * weight^T + bias + add)))).
//
// The tile is small and K is long, so eight blocks share a tile: each multiplies its part
// of K and adds the result to y atomically. A second kernel applies everything else in
// place once all parts are in.

static constexpr int BM = 8;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int PARTS = 8;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;
static constexpr int EPILOGUE_THREADS = 128;
static constexpr float INV_SQRT_2 = 0.70710678118654752f;

__global__ void gemm_accumulate(const float* __restrict__ x, const float* __restrict__ weight,
                                float* y, int B, int K, int N, int part_size) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const int first = blockIdx.z * part_size;
    const int last = min(first + part_size, K);
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int k0 = first; k0 < last; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < BM; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < last) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < BN; i += THREADS / BK) {
            tile_w[i][tid % BK] = (col0 + i < N && k < last) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float a0 = tile_x[ty * 2][i];
            const float a1 = tile_x[ty * 2 + 1][i];
            const float b0 = tile_w[tx * 2][i];
            const float b1 = tile_w[tx * 2 + 1][i];
            acc[0][0] += a0 * b0;
            acc[0][1] += a0 * b1;
            acc[1][0] += a1 * b0;
            acc[1][1] += a1 * b1;
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + ty * 2 + i;
            const int col = col0 + tx * 2 + j;
            if (row < B && col < N) {
                atomicAdd(&y[static_cast<long long>(row) * N + col], acc[i][j]);
            }
        }
    }
}

__global__ void epilogue(float* y, const float* __restrict__ bias,
                         const float* __restrict__ add_value, long long n, int N) {
    const long long i = static_cast<long long>(blockIdx.x) * EPILOGUE_THREADS + threadIdx.x;
    if (i < n) {
        const int col = i % N;
        const float h = y[i] + bias[col] + add_value[col];
        const float t = tanhf(h / (1.0f + expf(-h)));
        const float g = 0.5f * t * (1.0f + erff(t * INV_SQRT_2));
        y[i] = fminf(fmaxf(g, -1.0f), 1.0f);
    }
}

void launch(const float* x, const float* weight, const float* bias, const float* add_value,
            float* y, int B, int K, int N) {
    const long long n = static_cast<long long>(B) * N;
    cudaMemset(y, 0, n * sizeof(float));
    const int part_size = (K + PARTS - 1) / PARTS;
    dim3 block(TX, TY);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM, PARTS);
    gemm_accumulate<<<grid, block>>>(x, weight, y, B, K, N, part_size);
    epilogue<<<(n + EPILOGUE_THREADS - 1) / EPILOGUE_THREADS, EPILOGUE_THREADS>>>(
        y, bias, add_value, n, N);
}
