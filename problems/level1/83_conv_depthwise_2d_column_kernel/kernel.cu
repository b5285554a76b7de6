// Depthwise 2D convolution with a 3x1 window: x[B, C, H, W], weight[C, 1, 3, 1],
// y[B, C, H - 2, W].
//
// The window has no width, so a row is a vector and an output row is a weighted sum of three
// input rows: four columns a thread where rows are 16-byte aligned, one otherwise.

static constexpr int K = 3;
static constexpr int TX = 16;
static constexpr int TY = 8;
static constexpr int VEC = 4;

__global__ void column_filter_vec4(const float4* __restrict__ x,
                                   const float* __restrict__ weight, float4* __restrict__ y,
                                   int C, int H, int vectors, int HO) {
    const int v = blockIdx.x * TX + threadIdx.x;
    const int ho = blockIdx.y * TY + threadIdx.y;
    if (v >= vectors || ho >= HO) {
        return;
    }
    const float* filter = weight + blockIdx.z % C * K;
    const float4* in = x + (static_cast<long long>(blockIdx.z) * H + ho) * vectors + v;

    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    #pragma unroll
    for (int k = 0; k < K; ++k) {
        const float tap = filter[k];
        const float4 row = in[k * vectors];
        sum.x += row.x * tap;
        sum.y += row.y * tap;
        sum.z += row.z * tap;
        sum.w += row.w * tap;
    }
    y[(static_cast<long long>(blockIdx.z) * HO + ho) * vectors + v] = sum;
}

__global__ void column_filter(const float* __restrict__ x, const float* __restrict__ weight,
                              float* __restrict__ y, int C, int H, int W, int HO) {
    const int w = blockIdx.x * TX + threadIdx.x;
    const int ho = blockIdx.y * TY + threadIdx.y;
    if (w >= W || ho >= HO) {
        return;
    }
    const float* filter = weight + blockIdx.z % C * K;
    const float* in = x + (static_cast<long long>(blockIdx.z) * H + ho) * W + w;

    float sum = 0.0f;
    #pragma unroll
    for (int k = 0; k < K; ++k) {
        sum += in[k * W] * filter[k];
    }
    y[(static_cast<long long>(blockIdx.z) * HO + ho) * W + w] = sum;
}

void launch(const float* x, const float* weight, float* y, int B, int C, int H, int W, int HO) {
    dim3 block(TX, TY);
    const int rows = (HO + TY - 1) / TY;
    if (W % VEC == 0) {
        const int vectors = W / VEC;
        dim3 grid((vectors + TX - 1) / TX, rows, B * C);
        column_filter_vec4<<<grid, block>>>(reinterpret_cast<const float4*>(x), weight,
                                            reinterpret_cast<float4*>(y), C, H, vectors, HO);
    } else {
        dim3 grid((W + TX - 1) / TX, rows, B * C);
        column_filter<<<grid, block>>>(x, weight, y, C, H, W, HO);
    }
}
