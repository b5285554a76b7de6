// y = the sum of each row: one block a row, partial sums in shared memory, a tree over them.

static constexpr int THREADS = 64;

__global__ void row_sum(const float* x, float* y, int d) {
    __shared__ float part[THREADS];
    const int tid = threadIdx.x;

    float sum = 0.0f;
    for (int i = tid; i < d; i += THREADS) {
        sum += x[blockIdx.x * d + i];
    }
    part[tid] = sum;
    __syncthreads();

    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            part[tid] += part[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        y[blockIdx.x] = part[0];
    }
}

void launch(const float* x, float* y, int B, int D) {
    row_sum<<<B, THREADS>>>(x, y, D);
}
