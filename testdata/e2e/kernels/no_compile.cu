extern "C" __global__ void fill(float* y) {
    const int i = threadIdx.x;
    y[i] = undeclared_name;
}
