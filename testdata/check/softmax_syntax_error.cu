// problem = "1/23"
// verdict = "rejected"
// exit = 1
// reason = "line 9: identifier \"undeclared\" is undefined"
// log = "softmax_syntax_error.cu(9)"
__global__ void softmax(const float* x, float* y, int D) {
    const int i = threadIdx.x;
    // The next line does not compile.
    y[i] = undeclared;
}

void launch(const float* x, float* y, int B, int D) {
    softmax<<<B, 256>>>(x, y, D);
}
