// Warp-wide primitives of CUB, one kernel template each. Every warp works on its own part of `x` and `y`.
// With NO_BARRIER the library's own warp barriers are gone.

#ifdef NO_BARRIER
#define __syncwarp(...) ((void)0)
#endif

#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

struct Max {
    __device__ int operator()(int a, int b) const { return a < b ? b : a; }
};

// First lane of each logical warp of W: the sum plus the sum of the first W - 3 (W > 3); others 0.
template <int B, int W>
__global__ void reduce(const int* x, int* y) {
    using Reduce = cub::WarpReduce<int, W>;
    __shared__ typename Reduce::TempStorage temp[B / W];
    const int i = blockIdx.x * B + threadIdx.x;
    const int sum = Reduce(temp[threadIdx.x / W]).Sum(x[i]);
    __syncwarp();
    const int part = Reduce(temp[threadIdx.x / W]).Sum(x[i], W > 3 ? W - 3 : W);
    y[i] = threadIdx.x % W == 0 ? sum + part : 0;
}

// Head of each segment (a multiple of 5 begins one): the segment's maximum; others 0.
template <int B>
__global__ void segments(const int* x, int* y) {
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage temp[B / 32];
    const int i = blockIdx.x * B + threadIdx.x;
    const int head = x[i] % 5 == 0;
    const int max = Reduce(temp[threadIdx.x / 32]).HeadSegmentedReduce(x[i], head, Max());
    y[i] = head || threadIdx.x % 32 == 0 ? max : 0;
}

// The sum of all before in the logical warp, plus its total.
template <int B, int W>
__global__ void scan(const int* x, int* y) {
    using Scan = cub::WarpScan<int, W>;
    __shared__ typename Scan::TempStorage temp[B / W];
    const int i = blockIdx.x * B + threadIdx.x;
    int sum, total;
    Scan(temp[threadIdx.x / W]).ExclusiveSum(x[i], sum, total);
    y[i] = sum + total;
}

template <int B, int W, int I>
__global__ void merge_sort(const int* x, int* y) {
    using Sort = cub::WarpMergeSort<int, I, W>;
    __shared__ typename Sort::TempStorage temp[B / W];
    const int first = (blockIdx.x * B + threadIdx.x) * I;
    int keys[I];
    for (int i = 0; i < I; i++) {
        keys[i] = x[first + i];
    }
    Sort(temp[threadIdx.x / W]).Sort(keys, Less());
    for (int i = 0; i < I; i++) {
        y[first + i] = keys[i];
    }
}

// Loads transposed, goes to striped and back, stores transposed: a copy.
template <int B, int W, int I>
__global__ void exchange(const int* x, int* y) {
    using Load = cub::WarpLoad<int, I, cub::WARP_LOAD_TRANSPOSE, W>;
    using Exchange = cub::WarpExchange<int, I, W>;
    using Store = cub::WarpStore<int, I, cub::WARP_STORE_TRANSPOSE, W>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Exchange::TempStorage exchange;
        typename Store::TempStorage store;
    } temp[B / W];
    const int warp = threadIdx.x / W;
    const int first = (blockIdx.x * B + warp * W) * I;
    int items[I];
    Load(temp[warp].load).Load(x + first, items);
    __syncwarp();
    Exchange(temp[warp].exchange).BlockedToStriped(items, items);
    __syncwarp();
    Exchange(temp[warp].exchange).StripedToBlocked(items, items);
    __syncwarp();
    Store(temp[warp].store).Store(y + first, items);
}
