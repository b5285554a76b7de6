// y = sigmoid(softmax over channels of transposed conv3x3x3(x) + bias), stride 2, padding 1,
// output padding 1.
//
// The convolution's blocks own a channel, whose filter waits in shared memory, and one of
// the eight parity classes of outputs, so the one or two taps per axis are the same for the
// whole block. A second kernel turns the channels of each position into their softmax, one
// thread per position.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int CLASSES = 8;
static constexpr int THREADS = 128;

__global__ void conv_transpose(const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, float* __restrict__ y, int CI,
                               int CO, int D, int H, int W) {
    extern __shared__ float filter[];
    const int co = blockIdx.y / CLASSES;
    const int odd_d = blockIdx.y / 4 % 2;
    const int odd_h = blockIdx.y / 2 % 2;
    const int odd_w = blockIdx.y % 2;
    for (int i = threadIdx.x; i < CI * TAPS; i += THREADS) {
        filter[i] = weight[(i / TAPS * CO + co) * TAPS + i % TAPS];
    }
    __syncthreads();

    const int volume = D * H * W;
    const int voxel = blockIdx.x * THREADS + threadIdx.x;
    if (voxel >= volume) {
        return;
    }
    const int w = voxel % W;
    const int h = voxel / W % H;
    const int d = voxel / (W * H);
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * volume + voxel;

    // An even place meets its voxel through tap 1, an odd one through tap 2, and the next
    // voxel through tap 0.
    float sum = bias[co];
    for (int nd = 0; nd <= odd_d; ++nd) {
        for (int nh = 0; nh <= odd_h; ++nh) {
            for (int nw = 0; nw <= odd_w; ++nw) {
                if (d + nd >= D || h + nh >= H || w + nw >= W) {
                    continue;
                }
                const int kd = odd_d + 1 - 2 * nd;
                const int kh = odd_h + 1 - 2 * nh;
                const int kw = odd_w + 1 - 2 * nw;
                const float* in = image + (nd * H + nh) * W + nw;
                const float* tap = filter + (kd * K + kh) * K + kw;
                for (int ci = 0; ci < CI; ++ci) {
                    sum += in[ci * volume] * tap[ci * TAPS];
                }
            }
        }
    }
    const long long plane = static_cast<long long>(blockIdx.z) * CO + co;
    const long long slice = plane * (2 * D) + 2 * d + odd_d;
    y[(slice * (2 * H) + 2 * h + odd_h) * (2 * W) + 2 * w + odd_w] = sum;
}

__global__ void softmax_sigmoid(float* y, int CO, int positions) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= positions) {
        return;
    }
    float* at = y + static_cast<long long>(blockIdx.y) * CO * positions + position;
    float top = -INFINITY;
    for (int co = 0; co < CO; ++co) {
        top = fmaxf(top, at[static_cast<long long>(co) * positions]);
    }
    float sum = 0.0f;
    for (int co = 0; co < CO; ++co) {
        sum += expf(at[static_cast<long long>(co) * positions] - top);
    }
    for (int co = 0; co < CO; ++co) {
        float* v = at + static_cast<long long>(co) * positions;
        *v = 1.0f / (1.0f + expf(-expf(*v - top) / sum));
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int CI,
            int CO, int D, int H, int W, int DO, int HO, int WO) {
    const int positions = DO * HO * WO;
    const int blocks = (positions + THREADS - 1) / THREADS;
    dim3 grid((D * H * W + THREADS - 1) / THREADS, CO * CLASSES, B);
    const int shared = CI * TAPS * sizeof(float);
    conv_transpose<<<grid, THREADS, shared>>>(x, weight, bias, y, CI, CO, D, H, W);
    dim3 position_grid(blocks, B);
    softmax_sigmoid<<<position_grid, THREADS>>>(y, CO, positions);
}
