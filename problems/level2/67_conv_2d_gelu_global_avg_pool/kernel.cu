// y[n, co] = mean over the image of gelu(conv3x3(x) + bias), no padding.
//
// One block per image and output channel: its filter sits in shared memory, its threads
// stride over the positions two at a time, and only the mean leaves the block.

#include "gelu.cuh"
#include "warp_sum_down.cuh"

static constexpr int K = 3;
static constexpr int TAPS = K * K;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;

__global__ void conv_gelu_mean(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int H, int W, int WO, int pixels) {
    extern __shared__ float filter[];
    __shared__ float parts[WARPS];
    const int tid = threadIdx.x;
    const int co = blockIdx.x;
    for (int i = tid; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[co * CI * TAPS + i];
    }
    __syncthreads();

    const float* image = x + static_cast<long long>(blockIdx.y) * CI * H * W;
    float total = 0.0f;
    for (int p = tid; p < pixels; p += 2 * THREADS) {
        // A second position that does not exist repeats the first and is not counted.
        const bool second = p + THREADS < pixels;
        const int q = second ? p + THREADS : p;
        const float* a = image + p / WO * W + p % WO;
        const float* b = image + q / WO * W + q % WO;
        float sum_a = bias[co];
        float sum_b = bias[co];
        for (int ci = 0; ci < CI; ++ci) {
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                const float w = filter[ci * TAPS + tap];
                const int at = tap / K * W + tap % K;
                sum_a += a[at] * w;
                sum_b += b[at] * w;
            }
            a += H * W;
            b += H * W;
        }
        total += gelu(sum_a);
        total += second ? gelu(sum_b) : 0.0f;
    }

    total = warp_sum_down(total);
    if (tid % WARP == 0) {
        parts[tid / WARP] = total;
    }
    __syncthreads();
    if (tid == 0) {
        float sum = 0.0f;
        #pragma unroll
        for (int i = 0; i < WARPS; ++i) {
            sum += parts[i];
        }
        y[static_cast<long long>(blockIdx.y) * CO + co] = sum / pixels;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int CI, int CO, int H, int W, int HO, int WO) {
    dim3 grid(CO, B);
    const int shared = CI * TAPS * sizeof(float);
    conv_gelu_mean<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, H, W, WO, HO * WO);
}
