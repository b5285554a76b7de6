// problem = "1/19"
// verdict = "rejected"
// exit = 1
// reason = "relu_other_names.cu:11:26: parameter `input` of `launch` is not bound: no input or output has that name; parameters go by name"
__global__ void relu(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

// The problem calls its tensors x and y.
void launch(const float* input, float* output, int n) {
    relu<<<(n + 255) / 256, 256>>>(input, output, n);
}
