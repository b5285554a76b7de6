// problem = "1/19"
// verdict = "not_general"
// exit = 0
// passes_there = true
// findings = ["misaligned_access"]
// Rows begin on 16 bytes only where D is a multiple of four.
__global__ void relu(const float* x, float* y, int D) {
    const float4* in = (const float4*)(x + (long long)blockIdx.x * D);
    float4* out = (float4*)(y + (long long)blockIdx.x * D);
    for (int i = threadIdx.x; i < D / 4; i += blockDim.x) {
        const float4 v = in[i];
        out[i] = make_float4(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f), fmaxf(v.z, 0.0f), fmaxf(v.w, 0.0f));
    }
    for (int i = D / 4 * 4 + threadIdx.x; i < D; i += blockDim.x)
        y[(long long)blockIdx.x * D + i] = fmaxf(x[(long long)blockIdx.x * D + i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    relu<<<B, 256>>>(x, y, D);
}
