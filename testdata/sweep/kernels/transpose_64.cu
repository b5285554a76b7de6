// out = x^T by tiles of 32 x 32 in shared memory; the index is a long long.
__global__ void transpose(const float* x, float* out, int rows, int cols) {
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    int r = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (c < cols && r + j < rows) {
            tile[threadIdx.y + j][threadIdx.x] = x[(long long)(r + j) * cols + c];
        }
    }
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x;
    r = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (c < rows && r + j < cols) {
            out[(long long)(r + j) * rows + c] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}

void launch(const float* x, float* out, int R, int C) {
    dim3 grid((C + 31) / 32, (R + 31) / 32);
    dim3 block(32, 8);
    transpose<<<grid, block>>>(x, out, R, C);
}
