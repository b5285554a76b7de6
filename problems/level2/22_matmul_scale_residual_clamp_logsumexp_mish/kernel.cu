// h = clamp(2 * scale * (x * weight^T + bias)); l = logsumexp(h) per row; y = l * mish(l).
//
// The GEMM is short and deep, so K is split among blocks: every part leaves its tile in a
// scratch tensor. The second kernel adds the parts in order while a warp walks a row and
// keeps the running maximum and the sum of exponentials relative to it.

static constexpr int TILE = 16;
static constexpr int PARTS = 4;
static constexpr int WARP = 32;
static constexpr int ROWS = 4;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__global__ void gemm_part(const float* __restrict__ x, const float* __restrict__ weight,
                          float* __restrict__ parts, int B, int K, int N, int part_size) {
    __shared__ float tile_x[TILE][TILE + 1];
    __shared__ float tile_w[TILE][TILE + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;
    const int w_row = blockIdx.x * TILE + ty;
    const int first = blockIdx.z * part_size;
    const int last = min(first + part_size, K);

    float sum = 0.0f;
    for (int k0 = first; k0 < last; k0 += TILE) {
        const int k = k0 + tx;
        tile_x[ty][tx] =
            (row < B && k < last) ? x[static_cast<long long>(row) * K + k] : 0.0f;
        tile_w[ty][tx] =
            (w_row < N && k < last) ? weight[static_cast<long long>(w_row) * K + k] : 0.0f;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sum += tile_x[ty][i] * tile_w[tx][i];
        }
        __syncthreads();
    }
    if (row < B && col < N) {
        parts[(static_cast<long long>(blockIdx.z) * B + row) * N + col] = sum;
    }
}

// log(1 + exp(v)) without overflow.
__device__ __forceinline__ float softplus(float v) {
    return fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v)));
}

__global__ void logsumexp_mish(const float* __restrict__ parts, const float* __restrict__ bias,
                               float* __restrict__ y, int B, int N, float scale_factor,
                               float clamp_min, float clamp_max) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * ROWS + threadIdx.y;
    if (row >= B) {
        return;
    }
    const long long part = static_cast<long long>(B) * N;
    const float* first = parts + static_cast<long long>(row) * N;

    // Finite, so that an idle lane's state merges without NaN.
    float top = -FLT_MAX;
    float sum = 0.0f;
    for (int n = lane; n < N; n += WARP) {
        float h = bias[n];
        #pragma unroll
        for (int p = 0; p < PARTS; ++p) {
            h += first[p * part + n];
        }
        h *= scale_factor;
        h = fminf(fmaxf(h + h, clamp_min), clamp_max);
        if (h > top) {
            sum *= expf(top - h);
            top = h;
        }
        sum += expf(h - top);
    }
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        const float other_top = __shfl_xor_sync(FULL_MASK, top, offset);
        const float other_sum = __shfl_xor_sync(FULL_MASK, sum, offset);
        const float both = fmaxf(top, other_top);
        sum = sum * expf(top - both) + other_sum * expf(other_top - both);
        top = both;
    }
    if (lane == 0) {
        const float l = top + logf(sum);
        y[row] = l * (l * tanhf(softplus(l)));
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scale_factor, float clamp_min, float clamp_max) {
    const int part_size = (K + PARTS - 1) / PARTS;
    float* parts = scratch<float>(static_cast<long long>(PARTS) * B * N);
    dim3 block(TILE, TILE);
    dim3 grid((N + TILE - 1) / TILE, (B + TILE - 1) / TILE, PARTS);
    gemm_part<<<grid, block>>>(x, weight, parts, B, K, N, part_size);
    dim3 rows(WARP, ROWS);
    logsumexp_mish<<<(B + ROWS - 1) / ROWS, rows>>>(parts, bias, y, B, N, scale_factor,
                                                    clamp_min, clamp_max);
}
