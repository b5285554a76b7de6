// Cooperative groups, one kernel each. `x` and `y` have a value per thread.
// With NO_BARRIER the barriers of blocks and tiles written here are gone.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

#ifdef NO_BARRIER
#define SYNC(group) ((void)0)
#else
#define SYNC(group) (group).sync()
#endif

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The sum of each tile plus its maximum.
template <int W>
__global__ void tiled_reduce(const int* x, int* y) {
    const auto tile = cg::tiled_partition<W>(cg::this_thread_block());
    const int v = x[index()];
    y[index()] = cg::reduce(tile, v, cg::plus<int>()) + cg::reduce(tile, v, cg::greater<int>());
}

// The sum of all before in the tile, plus that of those up to here.
template <int W>
__global__ void tiled_scan(const int* x, int* y) {
    const auto tile = cg::tiled_partition<W>(cg::this_thread_block());
    const int v = x[index()];
    y[index()] = cg::exclusive_scan(tile, v) + cg::inclusive_scan(tile, v);
}

// A tree in shared memory over each tile.
template <int W>
__global__ void tiled_shared(const int* x, int* y) {
    __shared__ int s[256];
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<W>(block);
    s[threadIdx.x] = x[index()];
    SYNC(tile);
    for (int step = W / 2; step > 0; step /= 2) {
        int other = 0;
        if (tile.thread_rank() < step) {
            other = s[threadIdx.x + step];
        }
        SYNC(tile);
        if (tile.thread_rank() < step) {
            s[threadIdx.x] += other;
        }
        SYNC(tile);
    }
    y[index()] = s[threadIdx.x - tile.thread_rank()];
}

// Threads with odd values: their number and rank in the warp's coalesced group, and its sum; others 0.
__global__ void coalesced(const int* x, int* y) {
    const int v = x[index()];
    int out = 0;
    if (v & 1) {
        const auto group = cg::coalesced_threads();
        out = cg::reduce(group, v, cg::plus<int>()) * 10000 + group.size() * 100 + group.thread_rank();
    }
    y[index()] = out;
}

// The sum over the lanes of the warp with the same value modulo 5.
__global__ void labeled(const int* x, int* y) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int v = x[index()];
    const auto group = cg::labeled_partition(warp, v % 5);
    y[index()] = cg::reduce(group, v, cg::plus<int>());
}

// The largest of the lanes of the warp that are likewise odd or even, shuffled from the group's last.
__global__ void binary(const int* x, int* y) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int v = x[index()];
    const auto group = cg::binary_partition(warp, (v & 1) != 0);
    y[index()] = cg::reduce(group, v, cg::greater<int>()) + group.shfl(v, group.size() - 1);
}

// Reversed within the block.
__global__ void block_sync(const int* x, int* y) {
    __shared__ int s[256];
    const auto block = cg::this_thread_block();
    s[block.thread_rank()] = x[index()];
    SYNC(block);
    y[index()] = s[block.size() - 1 - block.thread_rank()];
}

// As before, with arrival and waiting apart.
__global__ void block_arrive_wait(const int* x, int* y) {
    __shared__ int s[256];
    auto block = cg::this_thread_block();
    s[block.thread_rank()] = x[index()];
    auto token = block.barrier_arrive();
    const int own = x[index()];
    block.barrier_wait(static_cast<decltype(token)&&>(token));
    y[index()] = s[block.size() - 1 - block.thread_rank()] + own;
}

// Votes and matches of a tile of 16: how many are odd, how many equal this one modulo 3.
__global__ void tile_votes(const int* x, int* y) {
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int v = x[index()];
    const int odd = __popc(tile.ballot(v & 1)), same = __popc(tile.match_any(v % 3));
    y[index()] = odd * 1000 + same * 10 + (tile.any(v == 0) ? 1 : 0) + (tile.all(v >= 0) ? 2 : 0);
}
// One thread of the block writes for all.
__global__ void invoke_one(const int* x, int* y) {
    __shared__ int s;
    const auto block = cg::this_thread_block();
    cg::invoke_one(block, [&] { s = x[blockIdx.x * blockDim.x]; });
    SYNC(block);
    y[index()] = x[index()] - s;
}
