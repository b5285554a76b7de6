// Average pooling of x[B, C, H, W] with a window of 11 and a stride of 11.
//
// A block makes up to 23 outputs of one output row. First every thread sums eleven rows
// of one input column, coalesced; then one thread per output sums eleven of those.

static constexpr int KERNEL = 11;
static constexpr int WINDOWS = 23;
static constexpr int COLS = WINDOWS * KERNEL;
static constexpr int THREADS = 256;

__global__ void average_pool_rows(const float* __restrict__ x, float* __restrict__ y,
                                  int H, int W, int HO, int WO) {
    __shared__ float column_sums[COLS];
    const int tid = threadIdx.x;
    const int ho = blockIdx.y;
    const int w = blockIdx.x * COLS + tid;
    const float* in = x + (static_cast<long long>(blockIdx.z) * H + ho * KERNEL) * W;

    if (tid < COLS && w < W) {
        float sum = 0.0f;
        #pragma unroll
        for (int i = 0; i < KERNEL; ++i) {
            sum += in[i * W + w];
        }
        column_sums[tid] = sum;
    }
    __syncthreads();

    const int wo = blockIdx.x * WINDOWS + tid;
    if (tid < WINDOWS && wo < WO) {
        float sum = 0.0f;
        #pragma unroll
        for (int j = 0; j < KERNEL; ++j) {
            sum += column_sums[tid * KERNEL + j];
        }
        y[(static_cast<long long>(blockIdx.z) * HO + ho) * WO + wo] = sum / (KERNEL * KERNEL);
    }
}

void launch(const float* x, float* y, int B, int C, int H, int W, int HO, int WO) {
    dim3 grid((WO + WINDOWS - 1) / WINDOWS, HO, B * C);
    average_pool_rows<<<grid, THREADS>>>(x, y, H, W, HO, WO);
}
