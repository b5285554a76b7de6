// y = x / ||x||_2 along the rows of x[B, D].
//
// Several blocks share a row. A first kernel leaves a sum of squares per segment, a second
// adds up the row's segments and divides. Where D is no multiple of four, rows begin at
// any of four alignments: elements before the first 16-byte boundary are peeled off.

#include "warp_sum_down.cuh"

static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;
static constexpr int SEGMENTS = 8;
static constexpr int VEC = 4;

// A block's part of the tensor: `head` single elements, `vectors` float4, then singles.
struct Segment {
    long long begin;
    int count;
    int head;
    int vectors;
};

__device__ __forceinline__ Segment segment_of_block(int D) {
    const int per_segment = (D + SEGMENTS - 1) / SEGMENTS;
    const int from = min(static_cast<int>(blockIdx.x) * per_segment, D);
    const int to = min(from + per_segment, D);
    Segment s;
    s.begin = static_cast<long long>(blockIdx.y) * D + from;
    s.count = to - from;
    const int past_boundary = static_cast<int>(s.begin % VEC);
    s.head = min((VEC - past_boundary) % VEC, s.count);
    s.vectors = (s.count - s.head) / VEC;
    return s;
}

__global__ void segment_squares(const float* __restrict__ x, float* __restrict__ part, int D) {
    __shared__ float partial[WARPS];
    const int tid = threadIdx.x;
    const Segment s = segment_of_block(D);
    const float* in = x + s.begin;
    const float4* in4 = reinterpret_cast<const float4*>(in + s.head);

    float sum = 0.0f;
    if (tid < s.head) {
        sum = in[tid] * in[tid];
    }
    for (int i = tid; i < s.vectors; i += THREADS) {
        const float4 v = in4[i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int i = s.head + s.vectors * VEC + tid; i < s.count; i += THREADS) {
        sum += in[i] * in[i];
    }

    sum = warp_sum_down(sum);
    if (tid % WARP == 0) {
        partial[tid / WARP] = sum;
    }
    __syncthreads();
    if (tid == 0) {
        float total = 0.0f;
        for (int w = 0; w < WARPS; ++w) {
            total += partial[w];
        }
        part[blockIdx.y * SEGMENTS + blockIdx.x] = total;
    }
}

__global__ void divide_segments(const float* __restrict__ x, const float* __restrict__ part,
                                float* __restrict__ y, int D) {
    const int tid = threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < SEGMENTS; ++i) {
        sum += part[blockIdx.y * SEGMENTS + i];
    }
    const float norm = sqrtf(sum);

    const Segment s = segment_of_block(D);
    const float* in = x + s.begin;
    float* out = y + s.begin;
    const float4* in4 = reinterpret_cast<const float4*>(in + s.head);
    float4* out4 = reinterpret_cast<float4*>(out + s.head);
    if (tid < s.head) {
        out[tid] = in[tid] / norm;
    }
    for (int i = tid; i < s.vectors; i += THREADS) {
        float4 v = in4[i];
        v.x /= norm;
        v.y /= norm;
        v.z /= norm;
        v.w /= norm;
        out4[i] = v;
    }
    for (int i = s.head + s.vectors * VEC + tid; i < s.count; i += THREADS) {
        out[i] = in[i] / norm;
    }
}

void launch(const float* x, float* y, int B, int D) {
    float* part = scratch<float>(B * SEGMENTS);
    dim3 grid(SEGMENTS, B);
    segment_squares<<<grid, THREADS>>>(x, part, D);
    divide_segments<<<grid, THREADS>>>(x, part, y, D);
}
