// softmax.cu in OpenCL C. OpenCL 1.2 has no shuffles: the reductions go through local memory.
float block_reduce(float v, __local float* scratch, int maximum) {
    const int t = get_local_id(0);
    scratch[t] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int o = get_local_size(0) / 2; o > 0; o >>= 1) {
        if (t < o) {
            const float other = scratch[t + o];
            scratch[t] = maximum ? fmax(scratch[t], other) : scratch[t] + other;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    v = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void softmax(__global const float* x, __global float* y, int d) {
    __local float scratch[256];
    __global const float* row = x + (long)get_group_id(0) * d;
    __global float* out = y + (long)get_group_id(0) * d;
    float top = -3.4e38f;
    for (int i = get_local_id(0); i < d; i += get_local_size(0)) {
        top = fmax(top, row[i]);
    }
    top = block_reduce(top, scratch, 1);
    float sum = 0.0f;
    for (int i = get_local_id(0); i < d; i += get_local_size(0)) {
        sum += exp(row[i] - top);
    }
    sum = block_reduce(sum, scratch, 0);
    for (int i = get_local_id(0); i < d; i += get_local_size(0)) {
        out[i] = exp(row[i] - top) / sum;
    }
}
