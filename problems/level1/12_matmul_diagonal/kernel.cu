// C = diag(A) * B: row n of B times A[n]. One warp per row, which loads its factor once.

static constexpr int WARP = 32;
static constexpr int ROWS = 8;

__global__ void scale_rows(const float* __restrict__ A, const float* __restrict__ B,
                           float* __restrict__ C, int N, int M) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * ROWS + threadIdx.y;
    if (row >= N) {
        return;
    }
    const float factor = A[row];
    const long long offset = static_cast<long long>(row) * M;

    // Rows are 16-byte aligned only if M is a multiple of four.
    const int vectors = M % 4 == 0 ? M / 4 : 0;
    const float4* in4 = reinterpret_cast<const float4*>(B + offset);
    float4* out4 = reinterpret_cast<float4*>(C + offset);
    for (int i = lane; i < vectors; i += WARP) {
        float4 v = in4[i];
        v.x *= factor;
        v.y *= factor;
        v.z *= factor;
        v.w *= factor;
        out4[i] = v;
    }
    for (int i = vectors * 4 + lane; i < M; i += WARP) {
        C[offset + i] = B[offset + i] * factor;
    }
}

void launch(const float* A, const float* B, float* C, int N, int M) {
    dim3 block(WARP, ROWS);
    scale_rows<<<(N + ROWS - 1) / ROWS, block>>>(A, B, C, N, M);
}
