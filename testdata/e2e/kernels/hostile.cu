// Kernels that want to use up the host, for the tests of the command line.

__device__ __noinline__ int deeper(int n, const int* p) {
    volatile int a[64];
    a[n & 63] = n;
    return deeper(n + 1, p) + a[(n * 7) & 63] + p[0];
}

extern "C" __global__ void recursion(float* y) {
    int one = 1;
    y[0] = deeper(0, &one);
}

extern "C" __global__ void local_array(float* y) {
    volatile float a[1LL << 31];
    a[(long long)y[0]] = 1;
    y[0] = a[7];
}

extern "C" __global__ void shared_array(float* y) {
    __shared__ volatile float a[1 << 20];
    a[(int)y[0]] = 1;
    y[0] = a[7];
}

extern "C" __global__ void printf_flood(float* y) {
    for (long long i = 0; i < 1LL << 40; i++) {
        printf("%lld: a line after a line of text that nobody wants to read, %f\n", i, 1.5);
    }
    y[0] = 1;
}

extern "C" __global__ void assert_flood(float* y) {
    for (int i = 0; i < 1000; i++) {
        assert(i + threadIdx.x < 3 && "flood");
    }
    y[0] = 1;
}
