// Average pooling of x[B, C, D, H, W] with a window of 3, stride 2, padding 1.
//
// A thread owns one output row and column and marches along depth. The plane that two
// consecutive windows share is summed once and carried over in a register.

static constexpr int KERNEL = 3;
static constexpr int STRIDE = 2;
static constexpr int PAD = 1;
static constexpr int TILE_W = 16;
static constexpr int TILE_H = 8;

// The nine inputs of the window in one plane; padding adds nothing.
__device__ __forceinline__ float plane_sum(const float* __restrict__ plane, int h0, int w0,
                                           int H, int W) {
    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < KERNEL; ++i) {
        const int h = h0 + i;
        #pragma unroll
        for (int j = 0; j < KERNEL; ++j) {
            const int w = w0 + j;
            if (h >= 0 && h < H && w >= 0 && w < W) {
                sum += plane[h * W + w];
            }
        }
    }
    return sum;
}

__global__ void average_pool_march(const float* __restrict__ x, float* __restrict__ y, int D,
                                   int H, int W, int DO, int HO, int WO) {
    const int wo = blockIdx.x * TILE_W + threadIdx.x;
    const int ho = blockIdx.y * TILE_H + threadIdx.y;
    if (wo >= WO || ho >= HO) {
        return;
    }
    const int h0 = ho * STRIDE - PAD;
    const int w0 = wo * STRIDE - PAD;
    const long long in_plane = static_cast<long long>(H) * W;
    const long long out_plane = static_cast<long long>(HO) * WO;
    const float* in = x + blockIdx.z * D * in_plane;
    float* out = y + blockIdx.z * DO * out_plane + ho * WO + wo;

    // The plane before the first one is padding.
    float before = 0.0f;
    for (int i = 0; i < DO; ++i) {
        const int d = i * STRIDE;
        const float middle = plane_sum(in + d * in_plane, h0, w0, H, W);
        float after = 0.0f;
        if (d + 1 < D) {
            after = plane_sum(in + (d + 1) * in_plane, h0, w0, H, W);
        }
        out[i * out_plane] = (before + middle + after) / (KERNEL * KERNEL * KERNEL);
        before = after;
    }
}

void launch(const float* x, float* y, int B, int C, int D, int H, int W, int DO, int HO, int WO) {
    dim3 block(TILE_W, TILE_H);
    dim3 grid((WO + TILE_W - 1) / TILE_W, (HO + TILE_H - 1) / TILE_H, B * C);
    average_pool_march<<<grid, block>>>(x, y, D, H, W, DO, HO, WO);
}
