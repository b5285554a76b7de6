// Inclusive prefix sum along the rows of x[B, N].
//
// One block per row walks it in chunks of 1024: each thread sums four neighbouring
// elements, warps scan the thread totals by shuffles, the first warp scans the warp
// totals, and a carry links one chunk to the next.

static constexpr int THREADS = 256;
static constexpr int ITEMS = 4;
static constexpr int CHUNK = THREADS * ITEMS;
static constexpr int WARP = 32;
static constexpr int WARPS = THREADS / WARP;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__device__ __forceinline__ float warp_inclusive_scan(float value, int lane) {
    #pragma unroll
    for (int offset = 1; offset < WARP; offset <<= 1) {
        const float below = __shfl_up_sync(FULL_MASK, value, offset);
        if (lane >= offset) {
            value += below;
        }
    }
    return value;
}

__global__ void cumsum_rows(const float* __restrict__ x, float* __restrict__ y, int N) {
    __shared__ float warp_totals[WARPS];
    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    const int warp = tid / WARP;
    const float* in = x + static_cast<long long>(blockIdx.x) * N;
    float* out = y + static_cast<long long>(blockIdx.x) * N;

    float carry = 0.0f;
    for (int base = 0; base < N; base += CHUNK) {
        const int first = base + tid * ITEMS;

        float items[ITEMS];
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            items[i] = first + i < N ? in[first + i] : 0.0f;
        }
        #pragma unroll
        for (int i = 1; i < ITEMS; ++i) {
            items[i] += items[i - 1];
        }

        const float scanned = warp_inclusive_scan(items[ITEMS - 1], lane);
        // Shifted rather than `scanned` minus the own total, which would cancel digits.
        float before_lane = __shfl_up_sync(FULL_MASK, scanned, 1);
        if (lane == 0) {
            before_lane = 0.0f;
        }
        if (lane == WARP - 1) {
            warp_totals[warp] = scanned;
        }
        __syncthreads();
        if (warp == 0) {
            float total = lane < WARPS ? warp_totals[lane] : 0.0f;
            total = warp_inclusive_scan(total, lane);
            if (lane < WARPS) {
                warp_totals[lane] = total;
            }
        }
        __syncthreads();

        const float before_warp = warp > 0 ? warp_totals[warp - 1] : 0.0f;
        const float before_thread = carry + before_warp + before_lane;
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (first + i < N) {
                out[first + i] = before_thread + items[i];
            }
        }
        carry += warp_totals[WARPS - 1];
        // The next chunk overwrites the totals that slower warps may still read.
        __syncthreads();
    }
}

void launch(const float* x, float* y, int B, int N) {
    cumsum_rows<<<B, THREADS>>>(x, y, N);
}
