#include "/etc/passwd"
extern "C" __global__ void fill(float* y) { y[0] = 1.0f; }
