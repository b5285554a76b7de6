__global__ void set_kernel(float* y, float a, float b) { y[0] = a; y[1] = b; }
struct Shape { int64_t rows; int64_t columns = 2; };
enum class Mode { Plain, Twice };
static std::vector<int64_t> shape_of(const Shape& s) {
    std::vector<int64_t> out;
    out.reserve(2);
    for (int64_t n : {s.rows, s.columns}) {
        if (n == 0) continue;
        out.push_back(n);
    }
    return out;
}
torch::Tensor made(int rows) {
    Shape s{rows};
    s.rows += 1;
    std::array<float, 2> values = {1.0f, 2.0f};
    auto sum = std::accumulate(values.begin(), values.end(), 0.0f);
    auto pick = [&](int k) -> float { return k == 0 ? sum : values[k]; };
    auto sizes = shape_of(s);
    auto y = torch::zeros(sizes, torch::dtype(torch::kFloat).device(torch::kCUDA, 0));
    switch (rows) {
        case 0: sum = -1.0f; break;
        case 1:
        case 2: sum += 10.0f;
        default: sum += 100.0f;
    }
    std::tie(values[0], values[1]) = std::make_tuple(values[1], values[0]);
    set_kernel<<<1, 1>>>(y.data_ptr<float>(), pick(0), pick(1));
    return y;
}
