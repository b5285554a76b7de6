torch::Tensor forever(torch::Tensor x) {
    int64_t n = 0;
    while (true) {
        n = n + 1;
    }
    return x;
}
int deeper(int n) { return deeper(n + 1); }
int recursion(int n) { return deeper(n); }
torch::Tensor huge(int64_t n) { return torch::empty({n, n}, torch::kFloat32); }
torch::Tensor overflow(int64_t n) { return torch::empty({n, n, n, n}); }
int growing(int n) {
    std::vector<int> v;
    for (;;) v.push_back(n);
    return n;
}
__global__ void spin_kernel(float* x) { while (x[0] == x[0]) x[1] += 1.0f; }
void spin(torch::Tensor x) { spin_kernel<<<1, 1>>>(x.data_ptr<float>()); }
