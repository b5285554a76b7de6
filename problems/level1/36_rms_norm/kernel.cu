// RMSNorm over the channel dimension of x[B, C, H, W].
//
// One thread owns one spatial position and walks the channels twice: neighbouring
// threads read neighbouring addresses at every step, so all loads are coalesced.

static constexpr int THREADS = 256;

__global__ void rms_norm_channels(const float* __restrict__ x, float* __restrict__ y,
                                  int C, int spatial, float eps) {
    const int position = blockIdx.x * THREADS + threadIdx.x;
    if (position >= spatial) {
        return;
    }
    const long long offset = static_cast<long long>(blockIdx.y) * C * spatial + position;
    const float* in = x + offset;
    float* out = y + offset;

    float sum_sq = 0.0f;
    #pragma unroll 4
    for (int c = 0; c < C; ++c) {
        const float v = in[static_cast<long long>(c) * spatial];
        sum_sq += v * v;
    }
    const float inv_rms = rsqrtf(sum_sq / C + eps);

    #pragma unroll 4
    for (int c = 0; c < C; ++c) {
        const long long step = static_cast<long long>(c) * spatial;
        out[step] = in[step] * inv_rms;
    }
}

void launch(const float* x, float* y, int B, int C, int H, int W, float eps) {
    const int spatial = H * W;
    dim3 grid((spatial + THREADS - 1) / THREADS, B);
    rms_norm_channels<<<grid, THREADS>>>(x, y, C, spatial, eps);
}
