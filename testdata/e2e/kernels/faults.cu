// Kernels that go wrong, for the tests of the command line.

extern "C" __global__ void forever(float* y) {
    volatile int go = 1;
    while (go) {
    }
    y[0] = 1.0f;
}

extern "C" __global__ void fill(float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = 1.0f;
    }
}
