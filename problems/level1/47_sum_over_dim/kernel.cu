// Sum of x[B, Y, X] over Y, kept as a dimension: y[B, 1, X].
//
// A block owns 32 neighbouring columns and splits Y over eight rows of threads, which
// meet in a shared-memory tree. Every load of a warp is one contiguous line.

static constexpr int COLS = 32;
static constexpr int ROWS = 8;

__global__ void sum_columns(const float* __restrict__ x, float* __restrict__ y, int Y, int X) {
    __shared__ float partial[ROWS][COLS];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col = blockIdx.x * COLS + tx;
    // B * Y * X comes within 0.03 % of 2^31 at the official extents.
    const float* in = x + static_cast<long long>(blockIdx.y) * Y * X;

    float sum = 0.0f;
    if (col < X) {
        for (int row = ty; row < Y; row += ROWS) {
            sum += in[static_cast<long long>(row) * X + col];
        }
    }
    partial[ty][tx] = sum;
    __syncthreads();

    #pragma unroll
    for (int half = ROWS / 2; half > 0; half /= 2) {
        if (ty < half) {
            partial[ty][tx] += partial[ty + half][tx];
        }
        __syncthreads();
    }

    if (ty == 0 && col < X) {
        y[static_cast<long long>(blockIdx.y) * X + col] = partial[0][tx];
    }
}

void launch(const float* x, float* y, int B, int Y, int X) {
    dim3 block(COLS, ROWS);
    dim3 grid((X + COLS - 1) / COLS, B);
    sum_columns<<<grid, block>>>(x, y, Y, X);
}
