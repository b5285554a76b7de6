__global__ void touch_kernel(float* x) { x[0] = 1.0f; }
void touch(torch::Tensor x) { touch_kernel<<<1, 1>>>(x.data_ptr<float>()); }
float peek(torch::Tensor x) { return x.data_ptr<float>()[1]; }
