// BatchNorm of x[B, C, H, W] by the batch's own statistics.
//
// One block per plane (one sample, one channel) in each of three kernels: sums, then sums
// of squared deviations from the mean, then the result. Two passes rather than one keep
// the variance right where the mean is far above the spread.

static constexpr int THREADS = 256;

// The sum over the block, in every thread.
__device__ float block_sum(float value) {
    __shared__ float partial[THREADS];
    const int tid = threadIdx.x;
    partial[tid] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            partial[tid] += partial[tid + half];
        }
        __syncthreads();
    }
    return partial[0];
}

// What the planes of channel c left, over all samples, per element.
__device__ __forceinline__ float channel_mean(const float* part, int B, int C, int c,
                                              int spatial) {
    float sum = 0.0f;
    for (int n = 0; n < B; ++n) {
        sum += part[n * C + c];
    }
    return sum / (static_cast<float>(B) * spatial);
}

__global__ void plane_sums(const float* __restrict__ x, float* __restrict__ part, int spatial) {
    const int plane = blockIdx.y * gridDim.x + blockIdx.x;
    const float* in = x + static_cast<long long>(plane) * spatial;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < spatial; i += THREADS) {
        sum += in[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        part[plane] = sum;
    }
}

__global__ void plane_deviations(const float* __restrict__ x, const float* __restrict__ part_sum,
                                 float* __restrict__ part_sq, int B, int C, int spatial) {
    const int plane = blockIdx.y * C + blockIdx.x;
    const float* in = x + static_cast<long long>(plane) * spatial;
    const float mean = channel_mean(part_sum, B, C, blockIdx.x, spatial);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < spatial; i += THREADS) {
        const float d = in[i] - mean;
        sum += d * d;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        part_sq[plane] = sum;
    }
}

__global__ void normalise_planes(const float* __restrict__ x, const float* __restrict__ weight,
                                 const float* __restrict__ bias,
                                 const float* __restrict__ part_sum,
                                 const float* __restrict__ part_sq, float* __restrict__ y,
                                 int B, int C, int spatial, float eps) {
    const int c = blockIdx.x;
    const long long offset = (static_cast<long long>(blockIdx.y) * C + c) * spatial;
    const float mean = channel_mean(part_sum, B, C, c, spatial);
    const float var = channel_mean(part_sq, B, C, c, spatial);
    const float scale = weight[c] * rsqrtf(var + eps);
    const float shift = bias[c];
    for (int i = threadIdx.x; i < spatial; i += THREADS) {
        y[offset + i] = (x[offset + i] - mean) * scale + shift;
    }
}

void launch(const float* x, const float* weight, const float* bias, float* y,
            int B, int C, int H, int W, float eps) {
    const int spatial = H * W;
    float* part_sum = scratch<float>(B * C);
    float* part_sq = scratch<float>(B * C);
    dim3 grid(C, B);
    plane_sums<<<grid, THREADS>>>(x, part_sum, spatial);
    plane_deviations<<<grid, THREADS>>>(x, part_sum, part_sq, B, C, spatial);
    normalise_planes<<<grid, THREADS>>>(x, weight, bias, part_sum, part_sq, y,
                                        B, C, spatial, eps);
}
