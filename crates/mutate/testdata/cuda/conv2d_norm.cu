// Direct 2D convolution, then layer normalisation over channels with GELU: two kernels, one scratch.
#include <cuda_fp16.h>

__device__ __forceinline__ float gelu(float v) {
    return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}

template <int KSIZE>
__global__ void conv2d(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int N,
                       int C, int H, int W, int O, int OH, int OW, int stride, int pad) {
    const int total = N * O * OH * OW;
    for (int idx = blockIdx.x * blockDim.x + threadIdx.x; idx < total; idx += blockDim.x * gridDim.x) {
        const int ow = idx % OW;
        const int oh = (idx / OW) % OH;
        const int o = (idx / (OW * OH)) % O;
        const int n = idx / (OW * OH * O);
        float acc = 0.0f;
        for (int c = 0; c < C; ++c) {
            for (int kh = 0; kh < KSIZE; ++kh) {
                const int ih = oh * stride - pad + kh;
                if (ih < 0 || ih >= H) continue;
                for (int kw = 0; kw < KSIZE; ++kw) {
                    const int iw = ow * stride - pad + kw;
                    if (iw >= 0 && iw < W) {
                        acc = fmaf(x[((n * C + c) * H + ih) * W + iw],
                                   w[((o * C + c) * KSIZE + kh) * KSIZE + kw], acc);
                    }
                }
            }
        }
        y[idx] = acc;
    }
}

__global__ void norm_gelu(const float* __restrict__ t, const float* __restrict__ gamma,
                          const float* __restrict__ beta, float* __restrict__ y, int O, int plane, float eps) {
    __shared__ float sums[32];
    const int n = blockIdx.y;
    const int p = blockIdx.x;
    const float* base = t + n * O * plane + p;

    float sum = 0.0f;
    for (int o = threadIdx.x; o < O; o += blockDim.x) sum += base[o * plane];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    const float mean = sums[0] / O;
    __syncthreads();

    float sq = 0.0f;
    for (int o = threadIdx.x; o < O; o += blockDim.x) {
        const float d = base[o * plane] - mean;
        sq += d * d;
    }
    sums[threadIdx.x] = sq;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    const float inv = rsqrtf(sums[0] / O + eps);
    for (int o = threadIdx.x; o < O; o += blockDim.x) {
        const float v = (base[o * plane] - mean) * inv;
        y[(n * O + o) * plane + p] = gelu(v * gamma[o] + beta[o]);
    }
}

void launch(const float* x, const float* w, const float* gamma, const float* beta, float* y, int N, int C, int H,
            int W, int O, int OH, int OW, int stride, int pad, float eps) {
    float* t = scratch<float>(N * O * OH * OW);
    const int threads = 256;
    const int blocks = min((N * O * OH * OW + threads - 1) / threads, 1024);
    conv2d<3><<<blocks, threads>>>(x, w, t, N, C, H, W, O, OH, OW, stride, pad);
    dim3 grid(OH * OW, N);
    norm_gelu<<<grid, 32>>>(t, gamma, beta, y, O, OH * OW, eps);
}
