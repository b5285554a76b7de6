// C = A * B for a tall A and a wide B: A is [M, N], B is [N, M], N is small.
//
// A thread owns one column of C. It holds that column of B in registers, 32 terms at a
// time, and multiplies it with 16 rows of A, which all threads of the block read from the
// same place in shared memory.

static constexpr int COLS = 128;
static constexpr int ROWS = 16;
static constexpr int TERMS = 32;
static constexpr int VEC = 4;

__global__ void matmul_register_column(const float* __restrict__ A, const float* __restrict__ B,
                                       float* __restrict__ C, int M, int N) {
    __shared__ __align__(16) float rows[ROWS][TERMS];
    const int tid = threadIdx.x;
    const int col = blockIdx.x * COLS + tid;
    const int row0 = blockIdx.y * ROWS;

    float acc[ROWS];
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        acc[r] = 0.0f;
    }

    for (int n0 = 0; n0 < N; n0 += TERMS) {
        for (int i = tid; i < ROWS * TERMS; i += COLS) {
            const int row = row0 + i / TERMS;
            const int n = n0 + i % TERMS;
            rows[i / TERMS][i % TERMS] = (row < M && n < N) ? A[row * N + n] : 0.0f;
        }
        float column[TERMS];
        #pragma unroll
        for (int n = 0; n < TERMS; ++n) {
            const bool exists = n0 + n < N && col < M;
            column[n] = exists ? B[static_cast<long long>(n0 + n) * M + col] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            #pragma unroll
            for (int n = 0; n < TERMS; n += VEC) {
                const float4 a = *reinterpret_cast<const float4*>(&rows[r][n]);
                acc[r] += a.x * column[n];
                acc[r] += a.y * column[n + 1];
                acc[r] += a.z * column[n + 2];
                acc[r] += a.w * column[n + 3];
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (row0 + r < M && col < M) {
            C[static_cast<long long>(row0 + r) * M + col] = acc[r];
        }
    }
}

void launch(const float* A, const float* B, float* C, int M, int N) {
    dim3 grid((M + COLS - 1) / COLS, (M + ROWS - 1) / ROWS);
    matmul_register_column<<<grid, COLS>>>(A, B, C, M, N);
}
