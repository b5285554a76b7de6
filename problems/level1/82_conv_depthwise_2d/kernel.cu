// Depthwise 2D convolution with a 3x3 window: x[B, C, H, W], weight[C, 1, 3, 3],
// y[B, C, H - 2, W - 2].
//
// A thread walks 16 rows down one column. The three rows of its window stay in registers
// and roll: each step loads three values and moves six, instead of loading nine.

static constexpr int K = 3;
static constexpr int STRIP = 16;
static constexpr int THREADS = 32;

__global__ void depthwise_rolling(const float* __restrict__ x, const float* __restrict__ weight,
                                  float* __restrict__ y, int C, int H, int W, int HO, int WO) {
    const int wo = blockIdx.x * THREADS + threadIdx.x;
    const int first = blockIdx.y * STRIP;
    const int last = min(first + STRIP, HO);
    if (wo >= WO) {
        return;
    }
    const float* column = x + static_cast<long long>(blockIdx.z) * H * W + wo;
    float* out = y + static_cast<long long>(blockIdx.z) * HO * WO + wo;

    float tap[K][K];
    const float* filter = weight + blockIdx.z % C * (K * K);
    #pragma unroll
    for (int i = 0; i < K * K; ++i) {
        tap[i / K][i % K] = filter[i];
    }

    float row[K][K];
    #pragma unroll
    for (int r = 0; r < K - 1; ++r) {
        #pragma unroll
        for (int j = 0; j < K; ++j) {
            row[r][j] = column[(first + r) * W + j];
        }
    }

    for (int ho = first; ho < last; ++ho) {
        float sum = 0.0f;
        #pragma unroll
        for (int j = 0; j < K; ++j) {
            row[K - 1][j] = column[(ho + K - 1) * W + j];
        }
        #pragma unroll
        for (int r = 0; r < K; ++r) {
            #pragma unroll
            for (int j = 0; j < K; ++j) {
                sum += row[r][j] * tap[r][j];
            }
        }
        out[ho * WO] = sum;
        #pragma unroll
        for (int j = 0; j < K; ++j) {
            row[0][j] = row[1][j];
            row[1][j] = row[2][j];
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int C, int H, int W, int HO, int WO) {
    dim3 grid((WO + THREADS - 1) / THREADS, (HO + STRIP - 1) / STRIP, B * C);
    depthwise_rolling<<<grid, THREADS>>>(x, weight, y, C, H, W, HO, WO);
}
