// Row-wise softmax, online form: one pass keeps the running maximum together with the
// sum of exponentials relative to it, a second pass writes the normalised row.

static constexpr int WARP = 32;
static constexpr unsigned FULL_MASK = 0xffffffffu;
struct MaxSum {
    float top;
    float sum;
};

__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
    MaxSum out;
    out.top = fmaxf(a.top, b.top);
    out.sum = a.sum * expf(a.top - out.top) + b.sum * expf(b.top - out.top);
    return out;
}

__device__ __forceinline__ MaxSum warp_merge(MaxSum state) {
    #pragma unroll
    for (int offset = WARP / 2; offset > 0; offset >>= 1) {
        MaxSum other;
        other.top = __shfl_xor_sync(FULL_MASK, state.top, offset);
        other.sum = __shfl_xor_sync(FULL_MASK, state.sum, offset);
        state = merge(state, other);
    }
    return state;
}

__device__ __forceinline__ void push(MaxSum& state, float value) {
    if (value > state.top) {
        state.sum *= expf(state.top - value);
        state.top = value;
    }
    state.sum += expf(value - state.top);
}

template <int THREADS>
__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int D) {
    constexpr int WARPS = THREADS / WARP;
    __shared__ float warp_top[WARPS];
    __shared__ float warp_sum[WARPS];

    const long long offset = static_cast<long long>(blockIdx.x) * D;
    const float* in = x + offset;
    float* out = y + offset;
    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    const int warp = tid / WARP;

    // Rows are 16-byte aligned only if D is a multiple of four.
    const int vectors = (D % 4 == 0) ? D / 4 : 0;
    const float4* in4 = reinterpret_cast<const float4*>(in);
    float4* out4 = reinterpret_cast<float4*>(out);

    // Finite on purpose: -inf minus -inf would turn an idle thread's state into NaN.
    MaxSum state = {-FLT_MAX, 0.0f};
    for (int i = tid; i < vectors; i += THREADS) {
        const float4 v = in4[i];
        // One rescale for four values.
        const float top = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        if (top > state.top) {
            state.sum *= expf(state.top - top);
            state.top = top;
        }
        state.sum += expf(v.x - state.top) + expf(v.y - state.top)
                   + expf(v.z - state.top) + expf(v.w - state.top);
    }
    for (int i = vectors * 4 + tid; i < D; i += THREADS) {
        push(state, in[i]);
    }

    state = warp_merge(state);
    if (lane == 0) {
        warp_top[warp] = state.top;
        warp_sum[warp] = state.sum;
    }
    __syncthreads();
    // Every warp merges the partial states itself: no second barrier, no broadcast.
    state.top = lane < WARPS ? warp_top[lane] : -FLT_MAX;
    state.sum = lane < WARPS ? warp_sum[lane] : 0.0f;
    state = warp_merge(state);

    const float row_top = state.top;
    const float inverse = 1.0f / state.sum;
    for (int i = tid; i < vectors; i += THREADS) {
        float4 v = in4[i];
        v.x = expf(v.x - row_top) * inverse;
        v.y = expf(v.y - row_top) * inverse;
        v.z = expf(v.z - row_top) * inverse;
        v.w = expf(v.w - row_top) * inverse;
        out4[i] = v;
    }
    for (int i = vectors * 4 + tid; i < D; i += THREADS) {
        out[i] = expf(in[i] - row_top) * inverse;
    }
}

void launch(const float* x, float* y, int B, int D) {
    if (D >= 4096) {
        softmax_rows<512><<<B, 512>>>(x, y, D);
    } else {
        softmax_rows<128><<<B, 128>>>(x, y, D);
    }
}
