// out[x][y] = in[y][x], by tiles of 32 x 32 in shared memory; blocks of 32 x 8 threads.
template <typename I>
__global__ void transpose(const float* in, float* out, I height, I width) {
    __shared__ float tile[32][33];
    I x = (I)blockIdx.x * 32 + threadIdx.x;
    I y = (I)blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < width && y + j < height) {
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
        }
    }
    __syncthreads();
    x = (I)blockIdx.y * 32 + threadIdx.x;
    y = (I)blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < height && y + j < width) {
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
