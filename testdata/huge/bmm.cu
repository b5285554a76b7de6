// out[b] = a[b] @ b[b]: matrices of m x k and k x n, tiles of 16 x 16, one matrix per gridDim.z.
template <typename I>
__global__ void bmm(const float* a, const float* b, float* out, int m, int n, int k) {
    __shared__ float as[16][16], bs[16][16];
    I batch = blockIdx.z;
    I row = blockIdx.y * 16 + threadIdx.y;
    I col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < k; t += 16) {
        as[threadIdx.y][threadIdx.x] = a[batch * m * k + row * k + t + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[batch * k * n + (t + threadIdx.y) * n + col];
        __syncthreads();
        for (int j = 0; j < 16; ++j) {
            sum += as[threadIdx.y][j] * bs[j][threadIdx.x];
        }
        __syncthreads();
    }
    out[batch * m * n + row * n + col] = sum;
}
