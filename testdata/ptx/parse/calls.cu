// Direct, recursive and indirect calls, printf, structs by value.
struct Pair { int x, y; };
__device__ __noinline__ float grow(float x, int depth) {
    return depth <= 0 ? x : grow(x * 1.5f, depth - 1) + 1.0f;
}
__device__ __noinline__ Pair swap_pair(Pair p) { return Pair{p.y, p.x}; }
__device__ float twice(float x) { return x * 2.0f; }
__device__ float half_of(float x) { return x * 0.5f; }
__device__ float (*const table[2])(float) = {twice, half_of};
extern "C" __global__ void calls(float *out, int which, Pair p) {
    Pair q = swap_pair(p);
    float v = grow(table[which](out[threadIdx.x]), q.x);
    if (threadIdx.x == 0) printf("%d %f\n", q.y, v);
    out[threadIdx.x] = v;
}
