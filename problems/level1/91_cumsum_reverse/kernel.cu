// Sum of everything from an element to the end of its row, x[B, N].
//
// Reduce, then scan: a thread owns one contiguous segment of the row and sums it; the
// thread totals are scanned from the right in shared memory; then each thread walks its
// segment once more, from its end, on top of what lies to the right of it.

static constexpr int THREADS = 128;

__global__ void suffix_sums(const float* __restrict__ x, float* __restrict__ y, int N) {
    __shared__ float totals[THREADS];
    const int tid = threadIdx.x;
    const float* in = x + static_cast<long long>(blockIdx.x) * N;
    float* out = y + static_cast<long long>(blockIdx.x) * N;

    const int segment = (N + THREADS - 1) / THREADS;
    const int first = min(tid * segment, N);
    const int last = min(first + segment, N);

    float sum = 0.0f;
    for (int i = last - 1; i >= first; --i) {
        sum += in[i];
    }
    totals[tid] = sum;
    __syncthreads();

    #pragma unroll
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const float right = tid + offset < THREADS ? totals[tid + offset] : 0.0f;
        // Everybody has read before anybody adds.
        __syncthreads();
        totals[tid] += right;
        __syncthreads();
    }

    // What lies to the right of the segment, not the own total subtracted again.
    float running = tid + 1 < THREADS ? totals[tid + 1] : 0.0f;
    for (int i = last - 1; i >= first; --i) {
        running += in[i];
        out[i] = running;
    }
}

void launch(const float* x, float* y, int B, int N) {
    suffix_sums<<<B, THREADS>>>(x, y, N);
}
