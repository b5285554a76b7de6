// Rows of a table by number: a lookup in an embedding. The offset of a row is computed in the type of the index.
template <typename I>
__global__ void gather(const float* table, const long long* rows, float* out, int dim) {
    I row = (I)rows[blockIdx.x];
    for (int c = threadIdx.x; c < dim; c += blockDim.x) {
        out[(long long)blockIdx.x * dim + c] = table[row * dim + c];
    }
}
