// norm: the vector norm of order p of every row; the smallest magnitude where p is minus infinity.
#include "plain.cuh"

// The norm of order p, term by term: begin with 0, add every term, finish.
__device__ float added(float sum, float v, float p) {
    v = fabsf(v);
    if (p == INFINITY) return larger(sum, v);
    if (p == 0.0f) return sum + (v == 0.0f ? 0.0f : 1.0f);
    if (p == 1.0f) return sum + v;
    if (p == 2.0f) return sum + v * v;
    return sum + powf(v, p);
}

__device__ float finished(float sum, float p) {
    if (p == INFINITY || p == 0.0f || p == 1.0f) return sum;
    return p == 2.0f ? sqrtf(sum) : powf(sum, 1.0f / p);
}

__global__ void norm_kernel(const float* input, const long long* input_strides, float* y,
                            const long long* shape, long long rank, long long kept, long long rows,
                            long long terms, float p) {
    long long row = thread_number();
    if (row >= rows) return;
    const float* x = input + place(row, shape, input_strides, kept);
    shape += kept;
    input_strides += kept;
    rank -= kept;
    if (p == -INFINITY) {
        float least = INFINITY;
        for (long long k = 0; k < terms; ++k) {
            least = smaller(least, fabsf(x[place(k, shape, input_strides, rank)]));
        }
        y[row] = least;
        return;
    }
    float sum = 0.0f;
    for (long long k = 0; k < terms; ++k) sum = added(sum, x[place(k, shape, input_strides, rank)], p);
    y[row] = finished(sum, p);
}

void launch(const float* input, const long long* input_strides, float* y, const long long* shape,
            long long rank, long long kept, long long rows, long long terms, float p) {
    norm_kernel<<<blocks(rows), THREADS>>>(input, input_strides, y, shape, rank, kept, rows, terms, p);
}
