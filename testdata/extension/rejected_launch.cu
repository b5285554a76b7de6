__global__ void two_kernel(float* x, int n) { if (n > 0) x[0] = 1.0f; }
void few(torch::Tensor x) { two_kernel<<<1, 1>>>(x.data_ptr<float>()); }
void wrong(torch::Tensor x) { two_kernel<<<1, 1>>>(x.data_ptr<int>(), 1); }
