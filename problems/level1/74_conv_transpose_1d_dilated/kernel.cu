// Transposed 1D convolution with five taps, dilation 3: x[B, CI, L], weight[CI, CO, 5],
// y[B, CO, L + 12].
//
// A thread owns one position and four output channels. A channel of x is staged with its
// halo, and the taps of the four output channels lie side by side as one float4.

static constexpr int K = 5;
static constexpr int DILATION = 3;
static constexpr int REACH = DILATION * (K - 1);
static constexpr int THREADS = 128;
static constexpr int CO_TILE = 4;

__global__ void conv_transpose1d_dilated(const float* __restrict__ x,
                                         const float* __restrict__ weight,
                                         float* __restrict__ y, int CI, int CO, int L, int LO) {
    __shared__ float row[THREADS + REACH];
    __shared__ float4 taps[K];

    const int tid = threadIdx.x;
    const int l0 = blockIdx.x * THREADS;
    const int co0 = blockIdx.y * CO_TILE;
    float* taps_flat = reinterpret_cast<float*>(taps);

    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    for (int ci = 0; ci < CI; ++ci) {
        const float* in = x + (static_cast<long long>(blockIdx.z) * CI + ci) * L;
        for (int i = tid; i < THREADS + REACH; i += THREADS) {
            const int l = l0 + i - REACH;
            row[i] = (l >= 0 && l < L) ? in[l] : 0.0f;
        }
        if (tid < K * CO_TILE) {
            const int o = tid % CO_TILE;
            const int k = tid / CO_TILE;
            taps_flat[tid] = co0 + o < CO ? weight[(ci * CO + co0 + o) * K + k] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < K; ++k) {
            const float v = row[tid + REACH - k * DILATION];
            const float4 tap = taps[k];
            acc.x += v * tap.x;
            acc.y += v * tap.y;
            acc.z += v * tap.z;
            acc.w += v * tap.w;
        }
        __syncthreads();
    }

    const int l = l0 + tid;
    if (l < LO) {
        const float sums[CO_TILE] = {acc.x, acc.y, acc.z, acc.w};
        #pragma unroll
        for (int o = 0; o < CO_TILE; ++o) {
            if (co0 + o < CO) {
                y[(static_cast<long long>(blockIdx.z) * CO + co0 + o) * LO + l] = sums[o];
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int L, int LO) {
    dim3 grid((LO + THREADS - 1) / THREADS, (CO + CO_TILE - 1) / CO_TILE, B);
    conv_transpose1d_dilated<<<grid, THREADS>>>(x, weight, y, CI, CO, L, LO);
}
