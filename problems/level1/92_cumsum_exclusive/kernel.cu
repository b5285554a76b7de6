// Sum of everything before an element of its row, x[B, N]: three kernels.
//
// The first leaves the total of every chunk of 512 in a scratch tensor, the second turns
// a row's totals into what lies before each chunk, the third scans the chunks. Chunks of
// one row run in parallel, unlike in a loop with a carry.

#include "warp_sum_down.cuh"

static constexpr int THREADS = 256;
static constexpr int CHUNK = 2 * THREADS;

__global__ void chunk_totals(const float* __restrict__ x, float* __restrict__ totals, int N,
                             int chunks) {
    __shared__ float warp_sums[THREADS / WARP];
    const int tid = threadIdx.x;
    const int base = blockIdx.x * CHUNK;
    const float* in = x + static_cast<long long>(blockIdx.y) * N;

    float sum = base + tid < N ? in[base + tid] : 0.0f;
    if (base + THREADS + tid < N) {
        sum += in[base + THREADS + tid];
    }
    sum = warp_sum_down(sum);
    if (tid % WARP == 0) {
        warp_sums[tid / WARP] = sum;
    }
    __syncthreads();
    if (tid == 0) {
        float total = 0.0f;
        #pragma unroll
        for (int i = 0; i < THREADS / WARP; ++i) {
            total += warp_sums[i];
        }
        totals[static_cast<long long>(blockIdx.y) * chunks + blockIdx.x] = total;
    }
}

// A row has at most 64 chunks officially: one thread per row is enough.
__global__ void totals_before(float* __restrict__ totals, int rows, int chunks) {
    const int row = blockIdx.x * THREADS + threadIdx.x;
    if (row < rows) {
        float* mine = totals + static_cast<long long>(row) * chunks;
        float before = 0.0f;
        for (int i = 0; i < chunks; ++i) {
            const float total = mine[i];
            mine[i] = before;
            before += total;
        }
    }
}

// Blelloch's tree is exclusive by nature: sums go up, and what lies to the left goes down.
__global__ void scan_chunks(const float* __restrict__ x, const float* __restrict__ before,
                            float* __restrict__ y, int N, int chunks) {
    __shared__ float tree[CHUNK];
    const int tid = threadIdx.x;
    const int base = blockIdx.x * CHUNK;
    const float* in = x + static_cast<long long>(blockIdx.y) * N;
    float* out = y + static_cast<long long>(blockIdx.y) * N;

    for (int i = tid; i < CHUNK; i += THREADS) {
        tree[i] = base + i < N ? in[base + i] : 0.0f;
    }
    for (int width = 1; width < CHUNK; width *= 2) {
        __syncthreads();
        const int right = (tid + 1) * width * 2 - 1;
        if (right < CHUNK) {
            tree[right] += tree[right - width];
        }
    }
    __syncthreads();
    if (tid == 0) {
        tree[CHUNK - 1] = 0.0f;
    }
    for (int width = CHUNK / 2; width > 0; width /= 2) {
        __syncthreads();
        const int right = (tid + 1) * width * 2 - 1;
        if (right < CHUNK) {
            const float left = tree[right - width];
            tree[right - width] = tree[right];
            tree[right] += left;
        }
    }
    __syncthreads();

    const float offset = before[static_cast<long long>(blockIdx.y) * chunks + blockIdx.x];
    for (int i = tid; i < CHUNK; i += THREADS) {
        if (base + i < N) {
            out[base + i] = offset + tree[i];
        }
    }
}

void launch(const float* x, float* y, int B, int N) {
    const int chunks = (N + CHUNK - 1) / CHUNK;
    float* totals = scratch<float>(static_cast<long long>(B) * chunks);
    dim3 grid(chunks, B);
    chunk_totals<<<grid, THREADS>>>(x, totals, N, chunks);
    totals_before<<<(B + THREADS - 1) / THREADS, THREADS>>>(totals, B, chunks);
    scan_chunks<<<grid, THREADS>>>(x, totals, y, N, chunks);
}
