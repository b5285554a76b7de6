// C = A * s, by blocks of 64 columns and 4 rows. Rows of float4 are aligned only if N is a
// multiple of four: the launcher picks the instance.

static constexpr int COLS = 64;
static constexpr int ROWS = 4;

__device__ __forceinline__ float scaled(float v, float s) {
    return v * s;
}

__device__ __forceinline__ float4 scaled(float4 v, float s) {
    return make_float4(v.x * s, v.y * s, v.z * s, v.w * s);
}

// `T` is float or float4, `width` the length of a row in elements of T.
template <typename T>
__global__ void scale_matrix(const float* __restrict__ A, float* __restrict__ C, int M,
                             int width, float s) {
    const int col = blockIdx.x * COLS + threadIdx.x;
    const int row = blockIdx.y * ROWS + threadIdx.y;
    if (row < M && col < width) {
        const long long at = static_cast<long long>(row) * width + col;
        const T v = reinterpret_cast<const T*>(A)[at];
        reinterpret_cast<T*>(C)[at] = scaled(v, s);
    }
}

void launch(const float* A, float* C, int M, int N, float s) {
    dim3 block(COLS, ROWS);
    const int row_blocks = (M + ROWS - 1) / ROWS;
    if (N % 4 == 0) {
        const int width = N / 4;
        dim3 grid((width + COLS - 1) / COLS, row_blocks);
        scale_matrix<float4><<<grid, block>>>(A, C, M, width, s);
    } else {
        dim3 grid((N + COLS - 1) / COLS, row_blocks);
        scale_matrix<float><<<grid, block>>>(A, C, M, N, s);
    }
}
