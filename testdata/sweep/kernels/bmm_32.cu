// out[b] = a[b] @ b[b] by tiles of 16 x 16, a matrix for each gridDim.z; the index is an int.
__global__ void bmm(const float* a, const float* b, float* out, int m, int k, int n) {
    __shared__ float as[16][16], bs[16][16];
    int batch = blockIdx.z;
    int row = blockIdx.y * 16 + threadIdx.y;
    int col = blockIdx.x * 16 + threadIdx.x;
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

void launch(const float* a, const float* b, float* out, int B, int M, int K, int N) {
    dim3 grid(N / 16, M / 16, B);
    dim3 block(16, 16);
    bmm<<<grid, block>>>(a, b, out, M, K, N);
}
