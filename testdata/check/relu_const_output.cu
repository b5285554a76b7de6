// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "the output `y` is a pointer to const"
__global__ void relu(const float* x, const float* y, long long n) {}

void launch(const float* x, const float* y, int B, int D) {
    relu<<<1, 32>>>(x, y, (long long)B * D);
}
