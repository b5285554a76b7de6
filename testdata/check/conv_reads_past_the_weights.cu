// problem = "1/63"
// verdict = "undefined_behaviour"
// exit = 1
// passes_there = true
// findings = ["oob_read"]
// A load ahead, of which the last one passes the end; what it reads is thrown away.
__global__ void conv(const float* x, const float* weight, float* y, int CI, int CO, int H, int W, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int HO = H - 2, WO = W - 2;
    const int w = i % WO, h = i / WO % HO, co = i / (WO * HO) % CO, b = i / (WO * HO * CO);
    const volatile float* taps = weight + co * CI * 9;
    float next = taps[0], sum = 0.0f;
    for (int k = 0; k < CI * 9; ++k) {
        const float tap = next;
        next = taps[k + 1];
        sum += tap * x[((b * CI + k / 9) * H + h + k % 9 / 3) * W + w + k % 3];
    }
    y[i] = sum;
}

void launch(const float* x, const float* weight, float* y, int B, int CI, int CO, int H, int W) {
    const int n = B * CO * (H - 2) * (W - 2);
    conv<<<(n + 127) / 128, 128>>>(x, weight, y, CI, CO, H, W, n);
}
