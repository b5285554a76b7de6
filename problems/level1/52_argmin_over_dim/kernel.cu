// Index of the minimum of x[B, Y, X] over Y.
//
// Value and row are packed into one 64-bit key, value first, so that the smallest key is
// the smallest value and, among equal ones, the first row. Slices of Y meet in an atomic
// minimum per column; a second kernel unpacks the rows.

static constexpr int COLS = 32;
static constexpr int ROWS = 4;
static constexpr int SPLITS = 8;
static constexpr int UNPACK_THREADS = 128;

__device__ __forceinline__ unsigned long long pack(float value, int row) {
    unsigned int order = 0u;
    // A NaN keeps order zero: it is the smallest value, as in PyTorch.
    if (value == value) {
        // Adding zero turns -0 into +0, which are equal; then unsigned order is made to
        // follow the order of the values, negative ones included.
        const unsigned int bits = __float_as_uint(value + 0.0f);
        order = (bits & 0x80000000u) ? ~bits : (bits | 0x80000000u);
    }
    return (static_cast<unsigned long long>(order) << 32) | static_cast<unsigned int>(row);
}

__global__ void argmin_slices(const float* __restrict__ x, unsigned long long* __restrict__ keys,
                              int Y, int X, int per_split) {
    const int col = blockIdx.x * COLS + threadIdx.x;
    if (col >= X) {
        return;
    }
    // B * Y * X comes within 0.03 % of 2^31 at the official extents.
    const float* in = x + static_cast<long long>(blockIdx.z) * Y * X + col;
    const int end = min((blockIdx.y + 1) * per_split, Y);

    unsigned long long best = ~0ull;
    for (int row = blockIdx.y * per_split + threadIdx.y; row < end; row += ROWS) {
        const unsigned long long key = pack(in[static_cast<long long>(row) * X], row);
        if (key < best) {
            best = key;
        }
    }
    atomicMin(&keys[blockIdx.z * X + col], best);
}

__global__ void unpack_rows(const unsigned long long* __restrict__ keys,
                            long long* __restrict__ y, int n) {
    const int i = blockIdx.x * UNPACK_THREADS + threadIdx.x;
    if (i < n) {
        y[i] = static_cast<long long>(keys[i] & 0xffffffffull);
    }
}

void launch(const float* x, long long* y, int B, int Y, int X) {
    const int n = B * X;
    const int per_split = (Y + SPLITS - 1) / SPLITS;
    unsigned long long* keys = scratch<unsigned long long>(n);
    // All ones, above the key of any value.
    cudaMemset(keys, 0xff, n * sizeof(unsigned long long));
    dim3 block(COLS, ROWS);
    dim3 grid((X + COLS - 1) / COLS, SPLITS, B);
    argmin_slices<<<grid, block>>>(x, keys, Y, X, per_split);
    unpack_rows<<<(n + UNPACK_THREADS - 1) / UNPACK_THREADS, UNPACK_THREADS>>>(keys, y, n);
}
