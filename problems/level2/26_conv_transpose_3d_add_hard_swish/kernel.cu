// h = transposed conv3x3x3(x) + bias + add_input, stride 2, padding 1, output padding 1;
// y = h * hardswish(h).
//
// A block serves the output rows of one parity of depth and height, so its tap loops are
// the same for all threads. A thread makes the two neighbours at 2 j and 2 j + 1 of a row,
// for four output channels: they need inputs j and j + 1 and all three taps of a row.

static constexpr int K = 3;
static constexpr int TAPS = K * K * K;
static constexpr int THREADS = 64;
static constexpr int CO_TILE = 4;

__device__ __forceinline__ float epilogue(float h) {
    return h * (h * fminf(fmaxf(h + 3.0f, 0.0f), 6.0f) / 6.0f);
}

__global__ void conv_transpose_pairs(const float* __restrict__ x,
                                     const float* __restrict__ weight,
                                     const float* __restrict__ bias,
                                     const float* __restrict__ add_input, float* __restrict__ y,
                                     int CI, int CO, int D, int H, int W, int co_tiles) {
    const int volume = D * H * W;
    const int voxel = blockIdx.x * THREADS + threadIdx.x;
    if (voxel >= volume) {
        return;
    }
    const int odd_d = blockIdx.y / 2;
    const int odd_h = blockIdx.y % 2;
    const int n = blockIdx.z / co_tiles;
    const int co0 = blockIdx.z % co_tiles * CO_TILE;
    const int j = voxel % W;
    const int i = voxel / W % H;
    const int d = voxel / (W * H);
    const int channels = min(CO_TILE, CO - co0);
    const bool has_next = j + 1 < W;
    const float* image = x + static_cast<long long>(n) * CI * volume;

    float even[CO_TILE] = {};
    float odd[CO_TILE] = {};
    // An even place takes tap 1 of its own input; an odd one tap 2, and tap 0 of the next.
    for (int kd = 1 - odd_d; kd < K; kd += 2) {
        const int id = d + (kd == 0 ? 1 : 0);
        if (id >= D) {
            continue;
        }
        for (int kh = 1 - odd_h; kh < K; kh += 2) {
            const int ih = i + (kh == 0 ? 1 : 0);
            if (ih >= H) {
                continue;
            }
            const float* in = image + (id * H + ih) * W + j;
            for (int ci = 0; ci < CI; ++ci) {
                const float here = in[0];
                const float next = has_next ? in[1] : 0.0f;
                #pragma unroll
                for (int o = 0; o < CO_TILE; ++o) {
                    if (o < channels) {
                        const float* taps =
                            weight + (ci * CO + co0 + o) * TAPS + (kd * K + kh) * K;
                        even[o] += here * taps[1];
                        odd[o] += here * taps[2] + next * taps[0];
                    }
                }
                in += volume;
            }
        }
    }
    #pragma unroll
    for (int o = 0; o < CO_TILE; ++o) {
        if (o < channels) {
            const long long slice = (static_cast<long long>(n) * CO + co0 + o) * (2 * D) + 2 * d;
            const long long row = (slice + odd_d) * (2 * H) + 2 * i + odd_h;
            const long long at = row * (2 * W) + 2 * j;
            y[at] = epilogue(even[o] + bias[co0 + o] + add_input[at]);
            y[at + 1] = epilogue(odd[o] + bias[co0 + o] + add_input[at + 1]);
        }
    }
}

void launch(const float* x, const float* add_input, const float* weight, const float* bias,
            float* y, int B, int CI, int CO, int D, int H, int W) {
    const int co_tiles = (CO + CO_TILE - 1) / CO_TILE;
    dim3 grid((D * H * W + THREADS - 1) / THREADS, 4, B * co_tiles);
    conv_transpose_pairs<<<grid, THREADS>>>(x, weight, bias, add_input, y, CI, CO, D, H, W,
                                            co_tiles);
}
