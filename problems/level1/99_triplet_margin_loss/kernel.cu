// Mean over rows of max(|a - p| - |a - n| + margin, 0), with PyTorch's 1e-6 added to every
// difference.
//
// A warp owns a row and sums both squared distances in one walk, two elements a lane at a
// time where rows are 8-byte aligned. A single block averages the rows' losses.

static constexpr int WARP = 32;
static constexpr int WARPS = 4;
static constexpr int MEAN_THREADS = 128;
static constexpr float EPS = 1e-6f;
static constexpr unsigned FULL_MASK = 0xffffffffu;

__device__ __forceinline__ void add_squared(float& sum, float a, float b) {
    const float d = a - b + EPS;
    sum += d * d;
}

__global__ void row_losses(const float* __restrict__ anchor, const float* __restrict__ positive,
                           const float* __restrict__ negative, float* __restrict__ losses,
                           int B, int D, float margin) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * WARPS + threadIdx.y;
    if (row >= B) {
        return;
    }
    const long long offset = static_cast<long long>(row) * D;

    float near = 0.0f;
    float far = 0.0f;
    const int pairs = D % 2 == 0 ? D / 2 : 0;
    const float2* a2 = reinterpret_cast<const float2*>(anchor + offset);
    const float2* p2 = reinterpret_cast<const float2*>(positive + offset);
    const float2* n2 = reinterpret_cast<const float2*>(negative + offset);
    for (int i = lane; i < pairs; i += WARP) {
        const float2 a = a2[i];
        const float2 p = p2[i];
        const float2 n = n2[i];
        add_squared(near, a.x, p.x);
        add_squared(near, a.y, p.y);
        add_squared(far, a.x, n.x);
        add_squared(far, a.y, n.y);
    }
    for (int i = pairs * 2 + lane; i < D; i += WARP) {
        add_squared(near, anchor[offset + i], positive[offset + i]);
        add_squared(far, anchor[offset + i], negative[offset + i]);
    }

    #pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        near += __shfl_down_sync(FULL_MASK, near, step);
        far += __shfl_down_sync(FULL_MASK, far, step);
    }
    if (lane == 0) {
        losses[row] = fmaxf(sqrtf(near) - sqrtf(far) + margin, 0.0f);
    }
}

__global__ void mean_of_rows(const float* __restrict__ losses, float* __restrict__ loss, int B) {
    __shared__ float sums[MEAN_THREADS];
    const int tid = threadIdx.x;
    float sum = 0.0f;
    for (int i = tid; i < B; i += MEAN_THREADS) {
        sum += losses[i];
    }
    sums[tid] = sum;
    __syncthreads();
    for (int half = MEAN_THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        *loss = sums[0] / B;
    }
}

void launch(const float* anchor, const float* positive, const float* negative, float* loss,
            int B, int D, float margin) {
    float* losses = scratch<float>(B);
    dim3 block(WARP, WARPS);
    row_losses<<<(B + WARPS - 1) / WARPS, block>>>(anchor, positive, negative, losses, B, D,
                                                   margin);
    mean_of_rows<<<1, MEAN_THREADS>>>(losses, loss, B);
}
