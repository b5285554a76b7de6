// problem = "1/19"
// verdict = "undefined_behaviour"
// exit = 1
// passes_there = true
// findings = ["input_modified"]
// Right for the output, and the caller's tensor is gone.
__global__ void relu(float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = y[i] = fmaxf(x[i], 0.0f);
}

void launch(float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<(n + 255) / 256, 256>>>(x, y, n);
}
