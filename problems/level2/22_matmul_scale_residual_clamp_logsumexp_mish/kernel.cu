// h = clamp(2 * scale * (x * weight^T + bias)); l = logsumexp(h) per row; y = l * mish(l).
//
// The GEMM is short and deep, so K is split among blocks: every part leaves its tile in a
// scratch tensor. The second kernel adds the parts in order while a warp walks a row and
// keeps the running maximum and the sum of exponentials relative to it.

#include "max_sum.cuh"
#include "softplus.cuh"

static constexpr int BM = 8;
static constexpr int BN = 16;
static constexpr int BK = 32;
static constexpr int TX = BN / 2;
static constexpr int TY = BM / 2;
static constexpr int THREADS = TX * TY;
static constexpr int PARTS = 4;
static constexpr int ROWS = 4;

// Thread (tx, ty) makes rows ty and ty + 4, columns tx and tx + 8 of the tile.
__global__ void gemm_part(const float* __restrict__ x, const float* __restrict__ weight,
                          float* __restrict__ parts, int B, int K, int N, int part_size) {
    __shared__ float tile_x[BM][BK + 1];
    __shared__ float tile_w[BN][BK + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * TX + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const float* x_tile = x + static_cast<long long>(row0) * K;
    const float* w_tile = weight + static_cast<long long>(col0) * K;
    const int first = blockIdx.z * part_size;
    const int last = min(first + part_size, K);

    float acc[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int k0 = first; k0 < last; k0 += BK) {
        const int k = k0 + tid % BK;
        #pragma unroll
        for (int i = tid / BK; i < BM; i += THREADS / BK) {
            tile_x[i][tid % BK] = (row0 + i < B && k < last) ? x_tile[i * K + k] : 0.0f;
        }
        #pragma unroll
        for (int i = tid / BK; i < BN; i += THREADS / BK) {
            tile_w[i][tid % BK] = (col0 + i < N && k < last) ? w_tile[i * K + k] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float a0 = tile_x[ty][i];
            const float a1 = tile_x[ty + TY][i];
            const float b0 = tile_w[tx][i];
            const float b1 = tile_w[tx + TX][i];
            acc[0][0] += a0 * b0;
            acc[0][1] += a0 * b1;
            acc[1][0] += a1 * b0;
            acc[1][1] += a1 * b1;
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + ty + i * TY;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int col = col0 + tx + j * TX;
            if (row < B && col < N) {
                parts[(static_cast<long long>(blockIdx.z) * B + row) * N + col] = acc[i][j];
            }
        }
    }
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
    warp_merge_max_sum(top, sum);
    if (lane == 0) {
        const float l = top + logf(sum);
        y[row] = l * (l * tanhf(softplus(l)));
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y, int B, int K, int N,
            float scale_factor, float clamp_min, float clamp_max) {
    const int part_size = (K + PARTS - 1) / PARTS;
    float* parts = scratch<float>(static_cast<long long>(PARTS) * B * N);
    dim3 block(TX, TY);
    dim3 grid((N + BN - 1) / BN, (B + BM - 1) / BM, PARTS);
    gemm_part<<<grid, block>>>(x, weight, parts, B, K, N, part_size);
    dim3 rows(WARP, ROWS);
    logsumexp_mish<<<(B + ROWS - 1) / ROWS, rows>>>(parts, bias, y, B, N, scale_factor,
                                                    clamp_min, clamp_max);
}
