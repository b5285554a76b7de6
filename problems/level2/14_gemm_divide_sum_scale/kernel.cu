// y[b] = scaling / 2 * sum over n of (x * weight^T)[b, n].
//
// The sum over outputs moves inside the product: y = scaling / 2 * x * (sum over n of
// weight[n]). One kernel sums the rows of the weight matrix, a column per thread; another
// multiplies every row of x by that vector, a block per row.

static constexpr int THREADS = 128;

__global__ void sum_weight_rows(const float* __restrict__ weight, float* __restrict__ summed,
                                int N, int K) {
    const int k = blockIdx.x * THREADS + threadIdx.x;
    if (k >= K) {
        return;
    }
    const float* column = weight + k;
    float sum = 0.0f;
    #pragma unroll 4
    for (int n = 0; n < N; ++n) {
        sum += column[static_cast<long long>(n) * K];
    }
    summed[k] = sum;
}

__global__ void rows_times_vector(const float* __restrict__ x, const float* __restrict__ summed,
                                  float* __restrict__ y, int K, float factor) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    const float* row = x + static_cast<long long>(blockIdx.x) * K;

    float sum = 0.0f;
    for (int k = tid; k < K; k += THREADS) {
        sum += row[k] * summed[k];
    }
    sums[tid] = sum;
    __syncthreads();
    #pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        y[blockIdx.x] = sums[0] * factor;
    }
}

void launch(const float* x, const float* weight, float* y, int B, int K, int N,
            float scaling_factor) {
    float* summed = scratch<float>(K);
    sum_weight_rows<<<(K + THREADS - 1) / THREADS, THREADS>>>(weight, summed, N, K);
    rows_times_vector<<<B, THREADS>>>(x, summed, y, K, scaling_factor / 2);
}
