// Transposed 3x3x3 convolution with stride 2, padding 1, output padding 1; with h its
// result, y = ((h + bias) + h) * h + h.
//
// A thread stands for an input voxel and makes the 2x2x2 outputs at twice its place. They
// meet the voxel and its neighbours one step on along each axis: eight loads and 27
// multiply-adds a channel, every tap used exactly once.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 128;

__global__ void conv_transpose3d_octets(const float* __restrict__ x,
                                        const float* __restrict__ weight,
                                        const float* __restrict__ conv_bias,
                                        const float* __restrict__ bias, float* __restrict__ y,
                                        int CI, int CO, int D, int H, int W) {
    const int voxel = blockIdx.x * THREADS + threadIdx.x;
    const int volume = D * H * W;
    if (voxel >= volume) {
        return;
    }
    const int n = blockIdx.y / CO;
    const int co = blockIdx.y % CO;
    const int w = voxel % W;
    const int h = voxel / W % H;
    const int d = voxel / (W * H);
    const float* in = x + static_cast<long long>(n) * CI * volume + voxel;

    float acc[2][2][2] = {};
    for (int ci = 0; ci < CI; ++ci) {
        const float* taps = weight + (ci * CO + co) * TAPS;
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int dd = i / 4;
            const int dh = i / 2 % 2;
            const int dw = i % 2;
            const bool exists = d + dd < D && h + dh < H && w + dw < W;
            const float v = exists ? in[(dd * H + dh) * W + dw] : 0.0f;
            // Along an axis, the voxel itself meets the even output through tap 1 and the
            // odd one through tap 2; its neighbour meets the odd one through tap 0.
            #pragma unroll
            for (int od = dd; od < 2; ++od) {
                #pragma unroll
                for (int oh = dh; oh < 2; ++oh) {
                    #pragma unroll
                    for (int ow = dw; ow < 2; ++ow) {
                        const int kd = od + 1 - 2 * dd;
                        const int kh = oh + 1 - 2 * dh;
                        const int kw = ow + 1 - 2 * dw;
                        acc[od][oh][ow] += v * taps[(kd * K + kh) * K + kw];
                    }
                }
            }
        }
        in += volume;
    }

    const long long plane = static_cast<long long>(blockIdx.y) * (2 * D);
    const float b = bias[co];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float v = acc[i / 4][i / 2 % 2][i % 2] + conv_bias[co];
        const long long row = (plane + 2 * d + i / 4) * (2 * H) + 2 * h + i / 2 % 2;
        y[row * (2 * W) + 2 * w + i % 2] = ((v + b) + v) * v + v;
    }
}

void launch(const float* x, const float* weight, const float* conv_bias, const float* bias,
            float* y, int B, int CI, int CO, int D, int H, int W) {
    dim3 grid((D * H * W + THREADS - 1) / THREADS, B * CO);
    conv_transpose3d_octets<<<grid, THREADS>>>(x, weight, conv_bias, bias, y, CI, CO, D, H, W);
}
