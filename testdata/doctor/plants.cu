// One planted fault of every finding kind; `assay doctor` runs each and expects exactly that finding.
#include <cassert>

// oob_read
__global__ void oob_read(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x + 1]; }
// oob_write
__global__ void oob_write(float* y) { y[threadIdx.x + 1] = 1.f; }
// misaligned_access
__global__ void misaligned_access(const char* x, float* y) { y[threadIdx.x] = *(const float*)(x + 4 * threadIdx.x + 2); }
// uninit_read_shared
__global__ void uninit_read_shared(float* y) {
  __shared__ float s[32];
  if (threadIdx.x < 16) s[threadIdx.x] = 1.f;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// uninit_read_global
__global__ void uninit_read_global(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
// uninit_read_local
__global__ void uninit_read_local(float* y, int k) {
  volatile float a[8];
  for (int i = 0; i < k; ++i) a[i] = float(i);
  y[threadIdx.x] = a[k];
}
// unwritten_output
__global__ void unwritten_output(float* y) { if (threadIdx.x < 16) y[threadIdx.x] = 1.f; }
// race_shared
__global__ void race_shared(const float* x, float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[63 - threadIdx.x];
}
// race_global
__global__ void race_global(float* y) { y[0] += 1.f; }
// barrier_divergence
__global__ void barrier_divergence(float* y) {
  if (threadIdx.x >= 32) return;
  __syncthreads();
  y[threadIdx.x] = 1.f;
}
// bad_shuffle_mask
__global__ void bad_shuffle_mask(float* y) {
  if (threadIdx.x < 16) y[threadIdx.x] = __shfl_down_sync(0x0000ffffu, float(threadIdx.x), 16);
}
// deadlock
__global__ void deadlock(float* y) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
  else asm volatile("bar.sync 2, 64;");
  y[threadIdx.x] = 1.f;
}
// invalid_launch: 2,000 threads in a block
__global__ void invalid_launch(float* y) { y[0] = 1.f; }
// input_modified: `launch` promises not to write `x`
__global__ void input_modified(float* x, float* y) { x[threadIdx.x] = y[threadIdx.x] = 1.f; }
void launch(const float* x, float* y) { input_modified<<<1, 32>>>((float*)x, y); }
// assert
__global__ void assertion(float* y) { assert(threadIdx.x < 31); y[threadIdx.x] = 1.f; }
// trap
__global__ void trapped(float* y) { if (threadIdx.x == 3) __trap(); y[threadIdx.x] = 1.f; }
// no fault at all: a block reduction, a shuffle and an atomic
__global__ void sound(const float* x, float* y) {
  __shared__ float s[2];
  float v = x[threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(y, s[0] + s[1]);
}
