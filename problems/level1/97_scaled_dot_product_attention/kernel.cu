// softmax(Q K^T / sqrt(E)) V for every batch and head, without storing the scores.
//
// A block owns eight queries and walks the keys eight at a time. Each warp makes the eight
// scores of its two queries; the online softmax rescales what was accumulated whenever a
// larger score appears. A thread accumulates its own columns of the embedding for all
// queries; blocks share out embeddings of more than 1024 columns.

#include "warp_sum.cuh"

static constexpr int QUERIES = 8;
static constexpr int KEYS = 8;
static constexpr int THREADS = 128;
static constexpr int WARPS = THREADS / WARP;
static constexpr int COLUMNS = 8;
static constexpr int PASS = THREADS * COLUMNS;

__global__ void flash_attention(const float* __restrict__ Q, const float* __restrict__ K,
                                const float* __restrict__ V, float* __restrict__ out, int S,
                                int E, float scale) {
    __shared__ float weights[QUERIES][KEYS];
    __shared__ float rescale[QUERIES];
    __shared__ float top[QUERIES];
    __shared__ float total[QUERIES];

    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    const int warp = tid / WARP;
    const int q0 = blockIdx.x * QUERIES;
    const int pass0 = blockIdx.z * PASS;
    const long long head = static_cast<long long>(blockIdx.y) * S * E;

    float acc[QUERIES][COLUMNS] = {};
    if (tid < QUERIES) {
        top[tid] = -INFINITY;
        total[tid] = 0.0f;
    }

    for (int k0 = 0; k0 < S; k0 += KEYS) {
        for (int pair = warp; pair < QUERIES * KEYS; pair += WARPS) {
            const int q = pair / KEYS;
            const int k = pair % KEYS;
            float dot = 0.0f;
            if (q0 + q < S && k0 + k < S) {
                const float* query = Q + head + static_cast<long long>(q0 + q) * E;
                const float* key = K + head + static_cast<long long>(k0 + k) * E;
                for (int e = lane; e < E; e += WARP) {
                    dot += query[e] * key[e];
                }
            }
            dot = warp_sum(dot);
            if (lane == 0) {
                // Keys beyond the last get no weight.
                weights[q][k] = k0 + k < S ? dot * scale : -INFINITY;
            }
        }
        __syncthreads();

        if (tid < QUERIES) {
            float best = top[tid];
            #pragma unroll
            for (int k = 0; k < KEYS; ++k) {
                best = fmaxf(best, weights[tid][k]);
            }
            // The first tile finds -inf as the old maximum, and expf(-inf) is 0.
            const float factor = expf(top[tid] - best);
            float sum = total[tid] * factor;
            #pragma unroll
            for (int k = 0; k < KEYS; ++k) {
                const float weight = expf(weights[tid][k] - best);
                weights[tid][k] = weight;
                sum += weight;
            }
            rescale[tid] = factor;
            top[tid] = best;
            total[tid] = sum;
        }
        __syncthreads();

        const int keys = min(KEYS, S - k0);
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int e = pass0 + c * THREADS + tid;
            if (e < E) {
                #pragma unroll
                for (int q = 0; q < QUERIES; ++q) {
                    acc[q][c] *= rescale[q];
                }
                for (int k = 0; k < keys; ++k) {
                    const float v = V[head + static_cast<long long>(k0 + k) * E + e];
                    #pragma unroll
                    for (int q = 0; q < QUERIES; ++q) {
                        acc[q][c] += weights[q][k] * v;
                    }
                }
            }
        }
        // The next tile overwrites weights and factors.
        __syncthreads();
    }

    #pragma unroll
    for (int q = 0; q < QUERIES; ++q) {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int e = pass0 + c * THREADS + tid;
            if (q0 + q < S && e < E) {
                out[head + static_cast<long long>(q0 + q) * E + e] = acc[q][c] / total[q];
            }
        }
    }
}

void launch(const float* Q, const float* K, const float* V, float* out,
            int B, int NH, int S, int E) {
    const float scale = 1.0f / sqrtf(static_cast<float>(E));
    // Each part of a long embedding is a block of its own, which makes the scores again.
    dim3 grid((S + QUERIES - 1) / QUERIES, B * NH, (E + PASS - 1) / PASS);
    flash_attention<<<grid, THREADS>>>(Q, K, V, out, S, E, scale);
}
