// problem = "1/19"
// verdict = "crashed"
// exit = 1
// findings = ["deadlock"]
__global__ void relu(const float* x, float* y, long long n) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
    else asm volatile("bar.sync 2, 64;");
    y[threadIdx.x] = x[threadIdx.x];
}

void launch(const float* x, float* y, int B, int D) {
    relu<<<1, 64>>>(x, y, (long long)B * D);
}
