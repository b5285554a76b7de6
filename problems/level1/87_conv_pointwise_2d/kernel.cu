// Pointwise 2D convolution: a GEMM y[n] = weight * x[n] with pixels as columns,
// x[B, CI, H * W], weight[CO, CI], y[B, CO, H * W].
//
// A block makes 16 channels by 64 pixels; every thread keeps 4 channels by 4 neighbouring
// pixels. Where the image is a multiple of four pixels, rows are loaded and stored as float4.

static constexpr int BM = 16;
static constexpr int BN = 64;
static constexpr int BK = 16;
static constexpr int VEC = 4;
static constexpr int TX = BN / VEC;
static constexpr int TY = BM / VEC;
static constexpr int THREADS = TX * TY;

__device__ __forceinline__ float4 load_pixels(const float* row, int p, int pixels, bool vector) {
    if (vector) {
        return p < pixels ? *reinterpret_cast<const float4*>(row + p)
                          : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    float4 v;
    v.x = p < pixels ? row[p] : 0.0f;
    v.y = p + 1 < pixels ? row[p + 1] : 0.0f;
    v.z = p + 2 < pixels ? row[p + 2] : 0.0f;
    v.w = p + 3 < pixels ? row[p + 3] : 0.0f;
    return v;
}

__global__ void pointwise_gemm(const float* __restrict__ x, const float* __restrict__ weight,
                               float* __restrict__ y, int CI, int CO, int pixels) {
    __shared__ float tile_w[BK][BM];
    __shared__ float4 tile_x[BK][TX];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int p = blockIdx.x * BN + tx * VEC;
    const int co0 = blockIdx.y * BM;
    const bool vector = pixels % VEC == 0;
    const float* image = x + static_cast<long long>(blockIdx.z) * CI * pixels;

    float acc[VEC][VEC] = {};

    for (int k0 = 0; k0 < CI; k0 += BK) {
        for (int i = tid; i < BK * BM; i += THREADS) {
            const int k = i % BK;
            const int o = i / BK;
            const bool exists = co0 + o < CO && k0 + k < CI;
            tile_w[k][o] = exists ? weight[(co0 + o) * CI + k0 + k] : 0.0f;
        }
        #pragma unroll
        for (int k = ty; k < BK; k += TY) {
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (k0 + k < CI) {
                v = load_pixels(image + static_cast<long long>(k0 + k) * pixels, p, pixels,
                                vector);
            }
            tile_x[k][tx] = v;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float4 v = tile_x[k][tx];
            #pragma unroll
            for (int i = 0; i < VEC; ++i) {
                const float w = tile_w[k][ty * VEC + i];
                acc[i][0] += w * v.x;
                acc[i][1] += w * v.y;
                acc[i][2] += w * v.z;
                acc[i][3] += w * v.w;
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < VEC; ++i) {
        const int co = co0 + ty * VEC + i;
        if (co >= CO) {
            continue;
        }
        float* row = y + (static_cast<long long>(blockIdx.z) * CO + co) * pixels;
        if (vector) {
            if (p < pixels) {
                *reinterpret_cast<float4*>(row + p) =
                    make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
            }
        } else {
            #pragma unroll
            for (int j = 0; j < VEC; ++j) {
                if (p + j < pixels) {
                    row[p + j] = acc[i][j];
                }
            }
        }
    }
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int H, int W) {
    const int pixels = H * W;
    dim3 block(TX, TY);
    dim3 grid((pixels + BN - 1) / BN, (CO + BM - 1) / BM, B);
    pointwise_gemm<<<grid, block>>>(x, weight, y, CI, CO, pixels);
}
