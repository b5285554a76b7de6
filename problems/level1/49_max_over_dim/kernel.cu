// Maximum of x[B, Y, X] over Y.
//
// A block owns 32 neighbouring columns; its 16 rows of threads walk Y two rows at a time
// with a maximum for each, and the first row of threads compares what all of them found.

static constexpr int COLS = 32;
static constexpr int ROWS = 16;

// A NaN wins, as in PyTorch; fmaxf would drop it.
__device__ __forceinline__ float larger(float a, float b) {
    return (b > a || b != b) ? b : a;
}

__global__ void max_columns(const float* __restrict__ x, float* __restrict__ y, int Y, int X) {
    __shared__ float partial[ROWS][COLS];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col = blockIdx.x * COLS + tx;
    // B * Y * X comes within 0.03 % of 2^31 at the official extents.
    const float* in = x + static_cast<long long>(blockIdx.y) * Y * X;

    float best0 = -INFINITY;
    float best1 = -INFINITY;
    if (col < X) {
        int row = ty;
        for (; row + ROWS < Y; row += 2 * ROWS) {
            best0 = larger(best0, in[static_cast<long long>(row) * X + col]);
            best1 = larger(best1, in[static_cast<long long>(row + ROWS) * X + col]);
        }
        if (row < Y) {
            best0 = larger(best0, in[static_cast<long long>(row) * X + col]);
        }
    }
    partial[ty][tx] = larger(best0, best1);
    __syncthreads();

    if (ty == 0 && col < X) {
        float best = partial[0][tx];
        for (int r = 1; r < ROWS; ++r) {
            best = larger(best, partial[r][tx]);
        }
        y[static_cast<long long>(blockIdx.y) * X + col] = best;
    }
}

void launch(const float* x, float* y, int B, int Y, int X) {
    dim3 block(COLS, ROWS);
    dim3 grid((X + COLS - 1) / COLS, B);
    max_columns<<<grid, block>>>(x, y, Y, X);
}
