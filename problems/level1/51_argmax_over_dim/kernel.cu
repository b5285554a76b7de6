// Index of the largest element of x[B, Y, X] along Y: y[B, X], 64-bit.
//
// Y is split twice: over blocks, which leave one (value, index) pair per column and
// split in scratch memory, and within a block over four rows of threads. Splits
// interleave the rows, so ties must be decided by the index, not by the order of merging.

static constexpr int COLS = 32;
static constexpr int ROWS = 4;
static constexpr int SPLITS = 8;
static constexpr int FINAL_THREADS = 128;

// Whether candidate (a, ia) goes before (b, ib): larger value, then smaller index.
// A NaN counts as larger than every number, as in PyTorch.
__device__ __forceinline__ bool beats(float a, int ia, float b, int ib) {
    const bool a_is_nan = a != a;
    const bool b_is_nan = b != b;
    if (a_is_nan != b_is_nan) {
        return a_is_nan;
    }
    if (a == b || a_is_nan) {
        return ia < ib;
    }
    return a > b;
}

__global__ void argmax_split(const float* __restrict__ x, float* __restrict__ part_value,
                             int* __restrict__ part_index, int Y, int X) {
    __shared__ float row_value[ROWS][COLS];
    __shared__ int row_index[ROWS][COLS];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col = blockIdx.x * COLS + tx;
    const float* in = x + static_cast<long long>(blockIdx.z) * Y * X;

    // Index Y marks "no candidate yet"; it loses every tie.
    float best = -INFINITY;
    int best_index = Y;
    if (col < X) {
        for (int row = blockIdx.y * ROWS + ty; row < Y; row += SPLITS * ROWS) {
            const float v = in[static_cast<long long>(row) * X + col];
            if (beats(v, row, best, best_index)) {
                best = v;
                best_index = row;
            }
        }
    }
    row_value[ty][tx] = best;
    row_index[ty][tx] = best_index;
    __syncthreads();

    if (ty == 0 && col < X) {
        for (int r = 1; r < ROWS; ++r) {
            const float v = row_value[r][tx];
            const int i = row_index[r][tx];
            if (beats(v, i, best, best_index)) {
                best = v;
                best_index = i;
            }
        }
        const long long slot = (static_cast<long long>(blockIdx.z) * SPLITS + blockIdx.y) * X + col;
        part_value[slot] = best;
        part_index[slot] = best_index;
    }
}

__global__ void argmax_final(const float* __restrict__ part_value,
                             const int* __restrict__ part_index, long long* __restrict__ y, int X) {
    const int col = blockIdx.x * FINAL_THREADS + threadIdx.x;
    if (col >= X) {
        return;
    }
    const long long first = static_cast<long long>(blockIdx.y) * SPLITS * X + col;
    float best = part_value[first];
    int best_index = part_index[first];
    for (int s = 1; s < SPLITS; ++s) {
        const long long slot = first + static_cast<long long>(s) * X;
        const float v = part_value[slot];
        const int i = part_index[slot];
        if (beats(v, i, best, best_index)) {
            best = v;
            best_index = i;
        }
    }
    y[static_cast<long long>(blockIdx.y) * X + col] = best_index;
}

void launch(const float* x, long long* y, int B, int Y, int X) {
    float* part_value = scratch<float>(B * SPLITS * X);
    int* part_index = scratch<int>(B * SPLITS * X);

    dim3 split_block(COLS, ROWS);
    dim3 split_grid((X + COLS - 1) / COLS, SPLITS, B);
    argmax_split<<<split_grid, split_block>>>(x, part_value, part_index, Y, X);

    dim3 final_grid((X + FINAL_THREADS - 1) / FINAL_THREADS, B);
    argmax_final<<<final_grid, FINAL_THREADS>>>(part_value, part_index, y, X);
}
