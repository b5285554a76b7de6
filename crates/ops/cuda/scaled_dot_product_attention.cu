// scaled_dot_product_attention: softmax(query @ key^T * scale + mask) @ value, one thread per query. A
// boolean mask forbids where it is false, is_causal the keys behind the query; a query without any allowed
// key gives zeros.
#include "plain.cuh"

__global__ void attention_kernel(const float* query, const long long* query_strides, const float* key,
                                 const long long* key_strides, const float* value,
                                 const long long* value_strides, const float* attn_mask,
                                 const bool* attn_mask_bool, const long long* attn_mask_strides,
                                 float* scores, float* y, const long long* shape, long long rank,
                                 long long rows, long long queries, long long keys, long long width,
                                 long long values, long long query_step, long long key_row,
                                 long long key_step, long long value_row, long long value_step,
                                 long long mask_step, bool is_causal, bool has_scale, float scale) {
    long long row = thread_number();
    if (row >= rows) return;
    query += place(row, shape, query_strides, rank);
    key += place(row, shape, key_strides, rank);
    value += place(row, shape, value_strides, rank);
    if (attn_mask) attn_mask += place(row, shape, attn_mask_strides, rank);
    if (attn_mask_bool) attn_mask_bool += place(row, shape, attn_mask_strides, rank);
    scores += row * keys;
    y += row * values;
    if (!has_scale) scale = 1.0f / sqrtf((float)width);
    float top = -INFINITY;
    for (long long s = 0; s < keys; ++s) {
        float dot = 0.0f;
        for (long long e = 0; e < width; ++e) {
            dot += query[e * query_step] * key[s * key_row + e * key_step];
        }
        dot *= scale;
        if (attn_mask) dot += attn_mask[s * mask_step];
        if (attn_mask_bool && !attn_mask_bool[s * mask_step]) dot = -INFINITY;
        if (is_causal && s > row % queries) dot = -INFINITY;
        scores[s] = dot;
        top = larger(top, dot);
    }
    bool closed = top == -INFINITY;
    float sum = 0.0f;
    for (long long s = 0; s < keys; ++s) {
        scores[s] = closed ? 0.0f : expf(scores[s] - top);
        sum += scores[s];
    }
    for (long long v = 0; v < values; ++v) {
        float total = 0.0f;
        for (long long s = 0; s < keys; ++s) {
            total += (closed ? 0.0f : scores[s] / sum) * value[s * value_row + v * value_step];
        }
        y[v] = total;
    }
}

void launch(const float* query, const long long* query_strides, const float* key,
            const long long* key_strides, const float* value, const long long* value_strides,
            const float* attn_mask, const bool* attn_mask_bool, const long long* attn_mask_strides,
            float* y, const long long* shape, long long rank, long long rows, long long queries,
            long long keys, long long width, long long values, long long query_step, long long key_row,
            long long key_step, long long value_row, long long value_step, long long mask_step,
            bool is_causal, bool has_scale, float scale) {
    float* scores = scratch<float>(rows * keys);
    attention_kernel<<<blocks(rows), THREADS>>>(query, query_strides, key, key_strides, value,
                                                value_strides, attn_mask, attn_mask_bool, attn_mask_strides,
                                                scores, y, shape, rank, rows, queries, keys, width, values,
                                                query_step, key_row, key_step, value_row, value_step,
                                                mask_step, is_causal, has_scale, scale);
}
