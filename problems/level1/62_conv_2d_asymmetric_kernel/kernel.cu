// 2D convolution with a 5x9 window: x[B, CI, H, W], weight[CO, CI, 5, 9],
// y[B, CO, H - 4, W - 8].
//
// A thread makes four neighbouring outputs of a row. For one filter row it holds the 12
// inputs that they share in registers and slides the nine taps over them: 12 loads feed
// 36 multiply-adds, without shared memory for the image.

static constexpr int KH = 5;
static constexpr int KW = 9;
static constexpr int STRIP = 4;
static constexpr int WINDOW = STRIP + KW - 1;
static constexpr int TX = 4;
static constexpr int TY = 8;
static constexpr int THREADS = TX * TY;

__global__ void conv2d_sliding(const float* __restrict__ x, const float* __restrict__ weight,
                               float* __restrict__ y, int CI, int CO, int H, int W, int HO,
                               int WO) {
    // One output channel per block: its whole filter serves every thread.
    extern __shared__ float filter[];

    const int n = blockIdx.z / CO;
    const int co = blockIdx.z % CO;
    const int tid = threadIdx.y * TX + threadIdx.x;
    const int terms = CI * KH * KW;
    for (int i = tid; i < terms; i += THREADS) {
        filter[i] = weight[co * terms + i];
    }
    __syncthreads();

    const int ho = blockIdx.y * TY + threadIdx.y;
    const int wo0 = (blockIdx.x * TX + threadIdx.x) * STRIP;
    if (ho >= HO || wo0 >= WO) {
        return;
    }

    float acc[STRIP] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(n) * CI + ci) * H * W;
        #pragma unroll
        for (int kh = 0; kh < KH; ++kh) {
            const float* row = plane + (ho + kh) * W;
            float window[WINDOW];
            #pragma unroll
            for (int i = 0; i < WINDOW; ++i) {
                // The last strip of a row may end beyond it.
                window[i] = wo0 + i < W ? row[wo0 + i] : 0.0f;
            }
            const float* taps = filter + (ci * KH + kh) * KW;
            #pragma unroll
            for (int kw = 0; kw < KW; ++kw) {
                const float tap = taps[kw];
                #pragma unroll
                for (int i = 0; i < STRIP; ++i) {
                    acc[i] += window[i + kw] * tap;
                }
            }
        }
    }

    float* out = y + ((static_cast<long long>(n) * CO + co) * HO + ho) * WO;
    #pragma unroll
    for (int i = 0; i < STRIP; ++i) {
        if (wo0 + i < WO) {
            out[wo0 + i] = acc[i];
        }
    }
}

void launch(const float* x, const float* weight, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    dim3 block(TX, TY);
    dim3 grid((WO + TX * STRIP - 1) / (TX * STRIP), (HO + TY - 1) / TY, B * CO);
    const int shared = CI * KH * KW * sizeof(float);
    conv2d_sliding<<<grid, block, shared>>>(x, weight, y, CI, CO, H, W, HO, WO);
}
