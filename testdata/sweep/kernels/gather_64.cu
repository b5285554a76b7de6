// out[r] = x[index[r]], rows of D elements, a block for each; the index is a long long.
__global__ void gather(const float* x, const long long* index, float* out, int dim) {
    long long source = index[blockIdx.x] * dim;
    long long target = (long long)blockIdx.x * dim;
    for (int c = threadIdx.x; c < dim; c += blockDim.x) {
        out[target + c] = x[source + c];
    }
}

void launch(const float* x, const long long* index, float* out, long long R, long long N, int D) {
    gather<<<N, 256>>>(x, index, out, D);
}
