// matmul.cu in OpenCL C: one 16x16 tile of each operand in local memory.
#define TILE 16
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void matmul(__global const float* A, __global const float* B, __global float* C, int M, int N, int K) {
    __local float a[TILE][TILE];
    __local float b[TILE][TILE];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int row = get_group_id(1) * TILE + y;
    const int col = get_group_id(0) * TILE + x;
    float acc = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        const int ka = k0 + x;
        const int kb = k0 + y;
        a[y][x] = (row < M && ka < K) ? A[row * K + ka] : 0.0f;
        b[y][x] = (kb < K && col < N) ? B[kb * N + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int k = 0; k < TILE; ++k) {
            acc = fma(a[y][k], b[k][x], acc);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && col < N) {
        C[row * N + col] = acc;
    }
}
