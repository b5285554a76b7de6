// A jump table, constants, initialised and demoted variables, local memory.
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.5f};
__device__ int grid[2][3] = {{1, 2}, {3, 4, 5}};
__device__ const char *names[2] = {"left", "right"};
__device__ double scale = 3.25;
extern "C" __global__ void __launch_bounds__(128, 2) tables(int *out, int which, const int *index) {
    __shared__ int tile[4][33];
    int local_copy[16];
    for (int i = 0; i < 16; i++) local_copy[i] = out[i];
    int x = out[threadIdx.x];
    switch (which) {
    case 0: x += grid[threadIdx.x & 1][which]; break;
    case 1: x *= 3; x ^= out[5]; break;
    case 2: x = x / 7 + out[6]; break;
    case 3: x = __popc(x) * out[9]; break;
    case 4: x = __clz(x) - out[2]; break;
    case 5: x = __brev(x) + out[3]; break;
    case 6: x = (int)(x * scale); break;
    case 7: x = atomicAdd(out + 7, x); break;
    case 8: x = __ffs(x) + atomicMax(out + 8, x); break;
    case 9: x = x % 13 + atomicMin(out, x); break;
    case 10: x = __mulhi(x, 77) + out[1]; break;
    case 11: __syncthreads(); x = out[11]; break;
    case 12: x = atomicExch(out + 3, x); break;
    default: x = names[x & 1][0];
    }
    tile[threadIdx.x & 3][threadIdx.x & 31] = x;
    __syncthreads();
    out[threadIdx.x] = tile[1][threadIdx.x & 31] + (int)weights[x & 3] + local_copy[index[0] & 15];
}
