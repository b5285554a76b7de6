// problem = "1/19"
// verdict = "exhausted"
// exit = 5
__global__ void relu(const float* x, float* y, long long n) {
    volatile int go = 1;
    while (go) {
    }
    y[0] = x[0];
}

void launch(const float* x, float* y, int B, int D) {
    relu<<<1, 32>>>(x, y, (long long)B * D);
}
