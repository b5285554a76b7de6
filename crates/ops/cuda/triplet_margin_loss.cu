// triplet_margin_loss: max(margin + d(anchor, positive) - d(anchor, negative), 0) with the norm of order p
// of a - b + eps over every row; with swap, d(positive, negative) counts where it is smaller. reduction 0
// averages, 1 sums, 2 is one loss per row.
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

// Both pointers at their rows; shape and strides of the terms.
__device__ float distance(const float* a, const long long* a_strides, const float* b,
                          const long long* b_strides, const long long* shape, long long rank, long long terms,
                          float p, float eps) {
    float sum = p == -INFINITY ? INFINITY : 0.0f;
    for (long long k = 0; k < terms; ++k) {
        float v = a[place(k, shape, a_strides, rank)] - b[place(k, shape, b_strides, rank)] + eps;
        sum = p == -INFINITY ? smaller(sum, fabsf(v)) : added(sum, v, p);
    }
    return p == -INFINITY ? sum : finished(sum, p);
}

__global__ void row_kernel(const float* anchor, const long long* anchor_strides, const float* positive,
                           const long long* positive_strides, const float* negative,
                           const long long* negative_strides, float* losses, const long long* shape,
                           long long rank, long long kept, long long rows, long long terms, float margin,
                           float p, float eps, bool swap) {
    long long row = thread_number();
    if (row >= rows) return;
    anchor += place(row, shape, anchor_strides, kept);
    positive += place(row, shape, positive_strides, kept);
    negative += place(row, shape, negative_strides, kept);
    shape += kept;
    anchor_strides += kept;
    positive_strides += kept;
    negative_strides += kept;
    rank -= kept;
    float near = distance(anchor, anchor_strides, positive, positive_strides, shape, rank, terms, p, eps);
    float far = distance(anchor, anchor_strides, negative, negative_strides, shape, rank, terms, p, eps);
    if (swap) {
        float other = distance(positive, positive_strides, negative, negative_strides, shape, rank, terms, p,
                               eps);
        far = smaller(far, other);
    }
    losses[row] = larger(margin + near - far, 0.0f);
}

__global__ void total_kernel(const float* losses, float* y, long long rows, bool average) {
    float sum = 0.0f;
    for (long long row = 0; row < rows; ++row) sum += losses[row];
    y[0] = average ? sum / rows : sum;
}

void launch(const float* anchor, const long long* anchor_strides, const float* positive,
            const long long* positive_strides, const float* negative, const long long* negative_strides,
            float* y, const long long* shape, long long rank, long long kept, long long rows,
            long long terms, float margin, float p, float eps, bool swap, long long reduction) {
    float* part = scratch<float>(rows);
    float* losses = reduction == 2 ? y : part;
    row_kernel<<<blocks(rows), THREADS>>>(anchor, anchor_strides, positive, positive_strides, negative,
                                          negative_strides, losses, shape, rank, kept, rows, terms, margin,
                                          p, eps, swap);
    if (reduction != 2) {
        total_kernel<<<1, 1>>>(losses, y, rows, reduction == 0);
    }
}
