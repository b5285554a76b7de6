// problem = "1/19"
// verdict = "undefined_behaviour"
// exit = 1
// passes_there = true
// findings = ["race_global"]
// Two blocks store each element: the values are equal, the race is one all the same.
__global__ void relu(const float* x, float* y, long long n) {
    const long long i = (blockIdx.x / 2) * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

void launch(const float* x, float* y, int B, int D) {
    const long long n = (long long)B * D;
    relu<<<2 * ((n + 255) / 256), 256>>>(x, y, n);
}
