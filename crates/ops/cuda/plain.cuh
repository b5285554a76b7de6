// What the plain kernels share: the element type, one thread per index, places by shape and strides.

#ifndef T
#define T float
#endif

static constexpr int THREADS = 256;

// Blocks for that many threads.
static long long blocks(long long threads) {
    return (threads + THREADS - 1) / THREADS;
}

// This thread's number in the grid.
__device__ long long thread_number() {
    return blockIdx.x * (long long)blockDim.x + threadIdx.x;
}

// Where index i, counted row-major over the shape, lies by the strides.
__device__ long long place(long long i, const long long* shape, const long long* strides, long long rank) {
    long long at = 0;
    for (long long d = rank - 1; d > 0; --d) {
        at += i % shape[d] * strides[d];
        i /= shape[d];
    }
    return rank > 0 ? at + i * strides[0] : at;
}

// The larger and the smaller of two, NaN if either is NaN.
template <typename E>
__device__ E larger(E a, E b) {
    return b > a || b != b ? b : a;
}

template <typename E>
__device__ E smaller(E a, E b) {
    return b < a || b != b ? b : a;
}
