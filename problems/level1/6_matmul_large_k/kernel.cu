// C = A * B for a very long K: A is [M, K], B is [K, N].
//
// C has few tiles, so K is split among the blocks of a grid axis. Every slice leaves its
// partial product in scratch, a second kernel adds the slices up in fixed order.

static constexpr int TILE = 16;
static constexpr int TILE_K = 32;
static constexpr int SPLITS = 16;
static constexpr int VEC = 4;
// Padding keeps rows 16-byte aligned and off each other's banks.
static constexpr int PITCH = TILE_K + VEC;
static constexpr int SUM_THREADS = 128;

__global__ void matmul_slices(const float* __restrict__ A, const float* __restrict__ B,
                              float* __restrict__ part, int M, int K, int N, int per_split) {
    __shared__ __align__(16) float tile_a[TILE][PITCH];
    // B's tile is stored by column: a thread reads four terms of either factor at once.
    __shared__ __align__(16) float tile_b[TILE][PITCH];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;
    const int begin = blockIdx.z * per_split;
    const int end = min(begin + per_split, K);

    float acc = 0.0f;
    for (int k0 = begin; k0 < end; k0 += TILE_K) {
        for (int j = tx; j < TILE_K; j += TILE) {
            const int k = k0 + j;
            tile_a[ty][j] = (row < M && k < end) ? A[static_cast<long long>(row) * K + k] : 0.0f;
        }
        for (int j = ty; j < TILE_K; j += TILE) {
            const int k = k0 + j;
            tile_b[tx][j] = (col < N && k < end) ? B[static_cast<long long>(k) * N + col] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE_K; k += VEC) {
            const float4 a = *reinterpret_cast<const float4*>(&tile_a[ty][k]);
            const float4 b = *reinterpret_cast<const float4*>(&tile_b[tx][k]);
            acc += a.x * b.x;
            acc += a.y * b.y;
            acc += a.z * b.z;
            acc += a.w * b.w;
        }
        __syncthreads();
    }

    if (row < M && col < N) {
        part[(static_cast<long long>(blockIdx.z) * M + row) * N + col] = acc;
    }
}

__global__ void add_slices(const float* __restrict__ part, float* __restrict__ C, int entries) {
    const int i = blockIdx.x * SUM_THREADS + threadIdx.x;
    if (i < entries) {
        float sum = 0.0f;
        for (int s = 0; s < SPLITS; ++s) {
            sum += part[static_cast<long long>(s) * entries + i];
        }
        C[i] = sum;
    }
}

void launch(const float* A, const float* B, float* C, int M, int K, int N) {
    const int entries = M * N;
    const int per_split = (K + SPLITS - 1) / SPLITS;
    float* part = scratch<float>(SPLITS * entries);

    dim3 block(TILE, TILE);
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE, SPLITS);
    matmul_slices<<<grid, block>>>(A, B, part, M, K, N, per_split);
    add_slices<<<(entries + SUM_THREADS - 1) / SUM_THREADS, SUM_THREADS>>>(part, C, entries);
}
