// Tensor-core instructions, ldmatrix, cp.async, half precision.
#include <mma.h>
#include <cuda_pipeline.h>
using namespace nvcuda;
extern "C" __global__ void matrix(const half *a, const half *b, float *c) {
    __shared__ __align__(16) half tile[512];
    __pipeline_memcpy_async(tile + threadIdx.x * 8, a + threadIdx.x * 8, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, tile, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    unsigned r0, r1, r2, r3, p = __cvta_generic_to_shared(tile + threadIdx.x * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(p));
    float d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(r0), "r"(r1));
    half2 h = __hfma2(__floats2half2_rn(d[0], d[1]), __floats2half2_rn(d[2], d[3]), __half2half2(b[0]));
    c[threadIdx.x] = __low2float(h) + (float)hexp(b[1]);
}
