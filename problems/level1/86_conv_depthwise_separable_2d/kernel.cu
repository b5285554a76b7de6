// Depthwise 3x3 convolution (padding 1) and pointwise convolution in one kernel:
// x[B, CI, H, W], depthwise[CI, 1, 3, 3], pointwise[CO, CI], y[B, CO, H, W].
//
// A block owns an 8x8 tile of the image. Each thread convolves its place in every channel
// and leaves it in shared memory; the pointwise step then reads all channels of a place,
// so the intermediate never reaches global memory.

static constexpr int K = 3;
static constexpr int TILE = 8;
static constexpr int THREADS = TILE * TILE;
static constexpr int CO_STEP = 8;

__global__ void separable_fused(const float* __restrict__ x, const float* __restrict__ depthwise,
                                const float* __restrict__ pointwise, float* __restrict__ y,
                                int CI, int CO, int H, int W) {
    // mid[ci][place]: sized by the launch.
    extern __shared__ float mid[];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int place = ty * TILE + tx;
    const int h = blockIdx.y * TILE + ty;
    const int w = blockIdx.x * TILE + tx;
    const bool inside = h < H && w < W;

    // A thread reads back only what it wrote itself, so no barrier is needed.
    for (int ci = 0; ci < CI; ++ci) {
        const float* plane = x + (static_cast<long long>(blockIdx.z) * CI + ci) * H * W;
        const float* taps = depthwise + ci * (K * K);
        float sum = 0.0f;
        #pragma unroll
        for (int kh = 0; kh < K; ++kh) {
            #pragma unroll
            for (int kw = 0; kw < K; ++kw) {
                const int r = h + kh - 1;
                const int c = w + kw - 1;
                const bool exists = inside && r >= 0 && r < H && c >= 0 && c < W;
                sum += exists ? plane[r * W + c] * taps[kh * K + kw] : 0.0f;
            }
        }
        mid[ci * THREADS + place] = sum;
    }

    if (!inside) {
        return;
    }
    for (int co0 = 0; co0 < CO; co0 += CO_STEP) {
        float acc[CO_STEP] = {};
        for (int ci = 0; ci < CI; ++ci) {
            const float v = mid[ci * THREADS + place];
            #pragma unroll
            for (int o = 0; o < CO_STEP; ++o) {
                // Rows beyond the last repeat it; their sums are not stored.
                acc[o] += v * pointwise[min(co0 + o, CO - 1) * CI + ci];
            }
        }
        #pragma unroll
        for (int o = 0; o < CO_STEP; ++o) {
            if (co0 + o < CO) {
                const long long plane = static_cast<long long>(blockIdx.z) * CO + co0 + o;
                y[(plane * H + h) * W + w] = acc[o];
            }
        }
    }
}

void launch(const float* x, const float* depthwise, const float* pointwise, float* y,
            int B, int CI, int CO, int H, int W) {
    dim3 block(TILE, TILE);
    dim3 grid((W + TILE - 1) / TILE, (H + TILE - 1) / TILE, B);
    const int shared = CI * THREADS * sizeof(float);
    separable_fused<<<grid, block, shared>>>(x, depthwise, pointwise, y, CI, CO, H, W);
}
