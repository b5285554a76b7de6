// Inclusive running product along the rows of x[B, N].
//
// One block per row in chunks of 2048. A thread multiplies eight neighbouring elements in
// registers; the 256 thread products are scanned in shared memory with two buffers taken
// in turns, so that each of the eight steps needs one barrier; a carry links the chunks.

static constexpr int THREADS = 256;
static constexpr int ITEMS = 8;
static constexpr int CHUNK = THREADS * ITEMS;

__global__ void cumprod_rows(const float* __restrict__ x, float* __restrict__ y, int N) {
    __shared__ float products[2][THREADS];
    const int tid = threadIdx.x;
    const float* in = x + static_cast<long long>(blockIdx.x) * N;
    float* out = y + static_cast<long long>(blockIdx.x) * N;

    float carry = 1.0f;
    for (int base = 0; base < N; base += CHUNK) {
        const int first = base + tid * ITEMS;
        float items[ITEMS];
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            items[i] = first + i < N ? in[first + i] : 1.0f;
        }
        #pragma unroll
        for (int i = 1; i < ITEMS; ++i) {
            items[i] *= items[i - 1];
        }

        int from = 0;
        products[from][tid] = items[ITEMS - 1];
        __syncthreads();
        #pragma unroll
        for (int offset = 1; offset < THREADS; offset *= 2) {
            float product = products[from][tid];
            if (tid >= offset) {
                product *= products[from][tid - offset];
            }
            products[from ^ 1][tid] = product;
            from ^= 1;
            __syncthreads();
        }

        const float before = tid > 0 ? carry * products[from][tid - 1] : carry;
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (first + i < N) {
                out[first + i] = before * items[i];
            }
        }
        carry *= products[from][THREADS - 1];
        // Eight steps end in the buffer that the next chunk writes first.
        __syncthreads();
    }
}

void launch(const float* x, float* y, int B, int N) {
    cumprod_rows<<<B, THREADS>>>(x, y, N);
}
