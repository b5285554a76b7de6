// Block-wide primitives of CUB, one kernel template each. Every block works on its own part of `x` and `y`.
// With NO_BARRIER the library's own barriers are gone, with NO_REUSE_BARRIER those between two uses of its storage.

#ifdef NO_BARRIER
#define __syncthreads() ((void)0)
#endif

#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>

#ifdef NO_REUSE_BARRIER
#define REUSE() ((void)0)
#else
#define REUSE() __syncthreads()
#endif

#define PART(n) \
    x += blockIdx.x * (n); \
    y += blockIdx.x * (n)

// Composition of affine maps modulo 2^16 each, packed in one int: associative, not commutative.
struct Compose {
    __device__ int operator()(int f, int g) const {
        const unsigned a = f & 0xffff, b = unsigned(f) >> 16, c = g & 0xffff, d = unsigned(g) >> 16;
        return int((a * c & 0xffff) | ((b * c + d) << 16));
    }
};

struct Max {
    __device__ int operator()(int a, int b) const { return a < b ? b : a; }
};

struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

struct Unequal {
    __device__ bool operator()(int a, int b) const { return a != b; }
};

struct Minus {
    __device__ int operator()(int a, int b) const { return a - b; }
};

// y: the sum, the sum of the first B - 5, the maximum of I items a thread, twice, then zeros.
template <cub::BlockReduceAlgorithm A, int B, int I>
__global__ void reduce(const int* x, int* y) {
    PART(B * I);
    using Reduce = cub::BlockReduce<int, B, A>;
    __shared__ typename Reduce::TempStorage temp;
    int items[I];
    for (int i = 0; i < I; i++) {
        items[i] = x[threadIdx.x * I + i];
        y[threadIdx.x * I + i] = 0;
    }
    const int sum = Reduce(temp).Sum(items[0]);
    REUSE();
    const int part = Reduce(temp).Sum(items[0], B - 5);
    REUSE();
    const int max = Reduce(temp).Reduce(items, Max());
    __syncthreads();
    if (threadIdx.x == 0) {
        y[0] = sum;
        y[1] = part;
        y[2] = max;
    }
}

// y[0]: the composition of all in order, which raking alone promises.
template <int B>
__global__ void reduce_in_order(const int* x, int* y) {
    PART(B);
    using Reduce = cub::BlockReduce<int, B, cub::BLOCK_REDUCE_RAKING>;
    __shared__ typename Reduce::TempStorage temp;
    const int all = Reduce(temp).Reduce(x[threadIdx.x], Compose());
    y[threadIdx.x] = threadIdx.x == 0 ? all : 0;
}

template <cub::BlockScanAlgorithm A, int B, int I>
__global__ void exclusive_sum(const int* x, int* y) {
    PART(B * I);
    using Scan = cub::BlockScan<int, B, A>;
    __shared__ typename Scan::TempStorage temp;
    int items[I], total;
    for (int i = 0; i < I; i++) {
        items[i] = x[threadIdx.x * I + i];
    }
    Scan(temp).ExclusiveSum(items, items, total);
    for (int i = 0; i < I; i++) {
        y[threadIdx.x * I + i] = items[i] + total;
    }
}

// Two tiles of B, the first one's total carried to the second.
struct Carry {
    int total;
    __device__ int operator()(int tile) {
        const int before = total;
        total = Compose()(total, tile);
        return before;
    }
};

template <cub::BlockScanAlgorithm A, int B>
__global__ void compose_tiles(const int* x, int* y) {
    PART(2 * B);
    using Scan = cub::BlockScan<int, B, A>;
    __shared__ typename Scan::TempStorage temp;
    Carry carry{1};
    for (int tile = 0; tile < 2; tile++) {
        int v = x[tile * B + threadIdx.x];
        Scan(temp).InclusiveScan(v, v, Compose(), carry);
        REUSE();
        y[tile * B + threadIdx.x] = v;
    }
}

template <int B, int I, int BITS>
__global__ void radix_sort(const int* x, int* y) {
    PART(B * I);
    using Sort = cub::BlockRadixSort<int, B, I, cub::NullType, BITS>;
    __shared__ typename Sort::TempStorage temp;
    int keys[I];
    for (int i = 0; i < I; i++) {
        keys[i] = x[threadIdx.x * I + i];
    }
    Sort(temp).Sort(keys);
    for (int i = 0; i < I; i++) {
        y[threadIdx.x * I + i] = keys[i];
    }
}

// y: the places of the values of x from the largest to the smallest by their low 8 bits, equal ones in order.
template <int B, int I>
__global__ void radix_sort_pairs(const int* x, int* y) {
    PART(B * I);
    using Sort = cub::BlockRadixSort<unsigned, B, I, int>;
    __shared__ typename Sort::TempStorage temp;
    unsigned keys[I];
    int places[I];
    for (int i = 0; i < I; i++) {
        keys[i] = unsigned(x[threadIdx.x * I + i]);
        places[i] = threadIdx.x * I + i;
    }
    Sort(temp).SortDescendingBlockedToStriped(keys, places, 0, 8);
    for (int i = 0; i < I; i++) {
        y[i * B + threadIdx.x] = places[i];
    }
}

template <int B, int I>
__global__ void merge_sort(const int* x, int* y) {
    PART(B * I);
    using Sort = cub::BlockMergeSort<int, B, I>;
    __shared__ typename Sort::TempStorage temp;
    int keys[I];
    for (int i = 0; i < I; i++) {
        keys[i] = x[threadIdx.x * I + i];
    }
    Sort(temp).Sort(keys, Less());
    for (int i = 0; i < I; i++) {
        y[threadIdx.x * I + i] = keys[i];
    }
}

// Blocked to striped, back, to warp-striped, back, then scattered to the reverse order.
template <int B, int I, bool SLICED>
__global__ void exchange(const int* x, int* y) {
    PART(B * I);
    using Exchange = cub::BlockExchange<int, B, I, SLICED>;
    __shared__ typename Exchange::TempStorage temp;
    int items[I], ranks[I];
    for (int i = 0; i < I; i++) {
        items[i] = x[threadIdx.x * I + i];
        ranks[i] = B * I - 1 - (threadIdx.x * I + i);
    }
    Exchange(temp).BlockedToStriped(items, items);
    REUSE();
    Exchange(temp).StripedToBlocked(items, items);
    REUSE();
    Exchange(temp).BlockedToWarpStriped(items, items);
    REUSE();
    Exchange(temp).WarpStripedToBlocked(items, items);
    REUSE();
    Exchange(temp).ScatterToBlocked(items, items, ranks);
    for (int i = 0; i < I; i++) {
        y[threadIdx.x * I + i] = items[i];
    }
}

// A copy of all but the last 7, through both algorithms.
template <cub::BlockLoadAlgorithm L, cub::BlockStoreAlgorithm S, int B, int I>
__global__ void load_store(const int* x, int* y) {
    x += blockIdx.x * (B * I);
    y += blockIdx.x * (B * I - 7);
    using Load = cub::BlockLoad<int, B, I, L>;
    using Store = cub::BlockStore<int, B, I, S>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } temp;
    int items[I];
    Load(temp.load).Load(x, items, B * I - 7, -1);
    REUSE();
    Store(temp.store).Store(y, items, B * I - 7);
}

template <cub::BlockHistogramAlgorithm A, int B, int I, int BINS>
__global__ void histogram(const int* x, int* y) {
    PART(B * I);
    using Histogram = cub::BlockHistogram<unsigned char, B, I, BINS, A>;
    __shared__ typename Histogram::TempStorage temp;
    __shared__ int bins[BINS];
    unsigned char items[I];
    for (int i = 0; i < I; i++) {
        items[i] = static_cast<unsigned char>(unsigned(x[threadIdx.x * I + i]) % BINS);
    }
    Histogram(temp).Histogram(items, bins);
    REUSE();
    Histogram(temp).Composite(items, bins);
    __syncthreads();
    for (int i = threadIdx.x; i < B * I; i += B) {
        y[i] = i < BINS ? bins[i] : 0;
    }
}

// Bit 0: differs from the one before; bit 1: from the one behind.
template <int B, int I>
__global__ void discontinuity(const int* x, int* y) {
    PART(B * I);
    using Flags = cub::BlockDiscontinuity<int, B>;
    __shared__ typename Flags::TempStorage temp;
    int items[I], heads[I], tails[I], alone[I];
    for (int i = 0; i < I; i++) {
        items[i] = x[threadIdx.x * I + i];
    }
    Flags(temp).FlagHeadsAndTails(heads, tails, items, Unequal());
    REUSE();
    Flags(temp).FlagHeads(alone, items, Unequal());
    for (int i = 0; i < I; i++) {
        y[threadIdx.x * I + i] = (heads[i] & alone[i]) | tails[i] << 1;
    }
}

// The difference to the one before, plus the one to the one behind; the ends as they are.
template <int B, int I>
__global__ void differences(const int* x, int* y) {
    PART(B * I);
    using Difference = cub::BlockAdjacentDifference<int, B>;
    __shared__ typename Difference::TempStorage temp;
    int items[I], left[I], right[I];
    for (int i = 0; i < I; i++) {
        items[i] = x[threadIdx.x * I + i];
    }
    Difference(temp).SubtractLeft(items, left, Minus());
    REUSE();
    Difference(temp).SubtractRight(items, right, Minus());
    for (int i = 0; i < I; i++) {
        y[threadIdx.x * I + i] = left[i] + right[i];
    }
}

// The value of the thread before (the first keeps its own) plus that of the last thread.
template <int B>
__global__ void shuffle(const int* x, int* y) {
    PART(B);
    using Shuffle = cub::BlockShuffle<int, B>;
    __shared__ typename Shuffle::TempStorage temp;
    const int v = x[threadIdx.x];
    int before = v, next = 0;
    Shuffle(temp).Offset(v, before, -1);
    REUSE();
    Shuffle(temp).Rotate(v, next, B - 1);
    y[threadIdx.x] = before + next;
}

// Runs of 1 to 4 of the thread's value, decoded in windows of B * 2.
template <int B>
__global__ void run_lengths(const int* x, int* y) {
    x += blockIdx.x * B;
    y += blockIdx.x * B * 4;
    using Decode = cub::BlockRunLengthDecode<int, B, 1, 2>;
    __shared__ typename Decode::TempStorage temp;
    int values[1] = {x[threadIdx.x]}, lengths[1] = {1 + int(unsigned(x[threadIdx.x]) % 4)}, total;
    Decode decode(temp, values, lengths, total);
    for (int from = 0; from < B * 4; from += B * 2) {
        int out[2] = {0, 0};
        if (from < total) {
            decode.RunLengthDecode(out, from);
        }
        for (int i = 0; i < 2; i++) {
            const int at = from + threadIdx.x * 2 + i;
            y[at] = at < total ? out[i] : 0;
        }
    }
}
