// Running sum of x where mask holds, along the rows of x[B, N].
//
// A warp owns a row and walks it 128 elements at a time: four neighbouring elements a
// lane, one shuffle scan over the lanes' totals, and the last lane's total as the carry.
// Warps never meet, so there is neither shared memory nor a barrier.

static constexpr int WARP = 32;
static constexpr int ITEMS = 4;
static constexpr int STEP = WARP * ITEMS;
static constexpr int WARPS = 4;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__global__ void masked_cumsum_rows(const float* __restrict__ x, const bool* __restrict__ mask,
                                   float* __restrict__ y, int B, int N) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * WARPS + threadIdx.y;
    if (row >= B) {
        return;
    }
    const float* in = x + static_cast<long long>(row) * N;
    const bool* keep = mask + static_cast<long long>(row) * N;
    float* out = y + static_cast<long long>(row) * N;

    float carry = 0.0f;
    for (int base = 0; base < N; base += STEP) {
        const int first = base + lane * ITEMS;
        float items[ITEMS];
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            items[i] = first + i < N ? in[first + i] * static_cast<float>(keep[first + i]) : 0.0f;
        }
        #pragma unroll
        for (int i = 1; i < ITEMS; ++i) {
            items[i] += items[i - 1];
        }

        float total = items[ITEMS - 1];
        #pragma unroll
        for (int offset = 1; offset < WARP; offset *= 2) {
            const float below = __shfl_up_sync(FULL_MASK, total, offset);
            if (lane >= offset) {
                total += below;
            }
        }
        float before = __shfl_up_sync(FULL_MASK, total, 1);
        before = lane > 0 ? carry + before : carry;
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (first + i < N) {
                out[first + i] = before + items[i];
            }
        }
        carry += __shfl_sync(FULL_MASK, total, WARP - 1);
    }
}

void launch(const float* x, const bool* mask, float* y, int B, int N) {
    dim3 block(WARP, WARPS);
    masked_cumsum_rows<<<(B + WARPS - 1) / WARPS, block>>>(x, mask, y, B, N);
}
