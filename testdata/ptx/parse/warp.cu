// Warp primitives, barriers, atomics, dynamic shared memory.
extern __shared__ __align__(16) unsigned char pool[];
extern "C" __global__ void warp(unsigned *out, float *sum) {
    unsigned mask = __activemask(), x = out[threadIdx.x];
    x += __shfl_sync(mask, x, 3) + __shfl_up_sync(mask, x, 1) + __shfl_xor_sync(mask, x, 1, 16);
    x += __ballot_sync(mask, x & 1) + __any_sync(mask, x) + __match_any_sync(mask, x);
    int same;
    x += __match_all_sync(mask, x, &same) + same;
    x += __reduce_add_sync(mask, x) + __funnelshift_l(x, x, 3) + __dp4a((int)x, (int)x, 3);
    float *f = reinterpret_cast<float *>(pool);
    f[threadIdx.x] = sum[threadIdx.x];
    x += __syncthreads_count(x > 3);
    atomicAdd(sum, f[threadIdx.x ^ 1]);
    atomicCAS(out, 1u, 2u);
    atomicAdd(f, 1.0f);
    __syncwarp();
    __threadfence();
    long long t = clock64();
    out[threadIdx.x] = x + (unsigned)t;
}
