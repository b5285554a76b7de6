#include <cublas_v2.h>

// Column-major products: C^T = B^T A^T of row-major matrices.
torch::Tensor plain(torch::Tensor A, torch::Tensor B, double alpha, double beta) {
    int m = A.size(0), k = A.size(1), n = B.size(1);
    auto C = torch::ones({m, n}, A.options());
    cublasHandle_t handle;
    cublasCreate(&handle);
    const float a = alpha, b = beta;
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &a, B.data_ptr<float>(), n, A.data_ptr<float>(), k, &b,
                C.data_ptr<float>(), n);
    cublasDestroy(handle);
    return C;
}

torch::Tensor typed(torch::Tensor A, torch::Tensor B, bool half) {
    int m = A.size(0), k = A.size(1), n = B.size(1);
    auto C = torch::zeros({m, n}, A.options());
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasSetStream(handle, stream);
    float alpha = 1.0f, beta = 0.0f;
    if (half) {
        cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, B.data_ptr<float>(), CUDA_R_16F, n,
                     A.data_ptr<float>(), CUDA_R_16F, k, &beta, C.data_ptr<float>(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT);
    } else {
        cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &alpha, B.data_ptr<float>(), CUDA_R_32F, k,
                     A.data_ptr<float>(), CUDA_R_32F, k, &beta, C.data_ptr<float>(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT);
    }
    return C;
}
