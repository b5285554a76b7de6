//! What a `.cu` file of an extension sees through PyTorch's and C++'s headers, and NVRTC does not have.
//!
//! The text stands before the device code, only the parts that the code mentions, and a `#line` keeps the code's lines
//! as they were. Written for NVRTC's C++17.
//!
//! - `std::` names: NVRTC's own `cuda::std`, as much of it as is mentioned;
//! - `c10::Half`, `at::Half`, `c10::BFloat16`, `at::BFloat16`: 16 bits that convert to and from `float`, which computes;
//! - `pow` and its like of two types;
//! - `__half` and `__nv_bfloat16` where their headers are not included;
//! - `CUDA_KERNEL_LOOP`, `C10_LAUNCH_BOUNDS_1`, `C10_HOST_DEVICE`, `C10_RESTRICT` and the like;
//! - `at::acc_type`, `at::opmath_type`; packed accessors (`torch::PackedTensorAccessor32` and its relatives);
//! - `warpSize`, `printf` and the limits are NVRTC's or the compiler crate's already.

/// A part: it is put in where one of the words is mentioned.
struct Part {
    words: &'static [&'static str],
    text: &'static str,
}

const PARTS: &[Part] = &[
    Part {
        words: &["pow", "fmod", "atan2", "fmax", "fmin"],
        // <cmath>'s overloads for arguments of two types, which compute in double.
        text: "\
template <typename T, typename U> __device__ inline double pow(T a, U b) { return pow((double)a, (double)b); }
template <typename T, typename U> __device__ inline double fmod(T a, U b) { return fmod((double)a, (double)b); }
template <typename T, typename U> __device__ inline double atan2(T a, U b) { return atan2((double)a, (double)b); }
template <typename T, typename U> __device__ inline double fmax(T a, U b) { return fmax((double)a, (double)b); }
template <typename T, typename U> __device__ inline double fmin(T a, U b) { return fmin((double)a, (double)b); }
",
    },
    Part {
        words: &["__half", "half2", "__half2"],
        text: "#include <cuda_fp16.h>\n",
    },
    Part { words: &["__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162"], text: "#include <cuda_bf16.h>\n" },
    Part { words: &["numeric_limits"], text: "#include <cuda/std/limits>\n" },
    Part {
        words: &["is_same", "is_same_v", "enable_if", "enable_if_t", "conditional", "conditional_t", "is_floating_point",
            "is_floating_point_v", "is_integral", "is_integral_v", "remove_reference_t", "decay_t", "true_type",
            "false_type", "integral_constant", "remove_cv_t", "common_type_t", "make_unsigned_t", "is_convertible_v"],
        text: "#include <cuda/std/type_traits>\n",
    },
    Part {
        words: &["forward", "move", "pair", "make_pair", "swap", "index_sequence", "make_index_sequence"],
        text: "#include <cuda/std/utility>\n",
    },
    Part { words: &["array"], text: "#include <cuda/std/array>\n" },
    Part { words: &["tuple", "make_tuple"], text: "#include <cuda/std/tuple>\n" },
    Part { words: &["complex"], text: "#include <cuda/std/complex>\n" },
    Part {
        words: &["acc_type", "acc_type_device", "opmath_type", "OpMathType"],
        text: "\
namespace at {
template <typename T> struct OpMathType { using type = T; };
template <typename T> using opmath_type = typename OpMathType<T>::type;
template <typename T, bool C> using acc_type = typename OpMathType<T>::type;
}
",
    },
    Part {
        words: &["Half", "BFloat16"],
        text: "\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
namespace c10 {
struct alignas(2) Half {
  unsigned short x;
  Half() = default;
  __host__ __device__ Half(float v) : x(__half_as_ushort(__float2half(v))) {}
  __device__ Half(const __half& v) : x(__half_as_ushort(v)) {}
  __host__ __device__ operator float() const { return __half2float(__ushort_as_half(x)); }
  __device__ operator __half() const { return __ushort_as_half(x); }
};
struct alignas(2) BFloat16 {
  unsigned short x;
  BFloat16() = default;
  __host__ __device__ BFloat16(float v) : x(__bfloat16_as_ushort(__float2bfloat16(v))) {}
  __device__ BFloat16(const __nv_bfloat16& v) : x(__bfloat16_as_ushort(v)) {}
  __host__ __device__ operator float() const { return __bfloat162float(__ushort_as_bfloat16(x)); }
  __device__ operator __nv_bfloat16() const { return __ushort_as_bfloat16(x); }
};
#define ASSAY_COMPARE(A, B, C) \\
  __device__ inline bool operator<(A a, B b) { return C(a) < C(b); } \\
  __device__ inline bool operator>(A a, B b) { return C(a) > C(b); } \\
  __device__ inline bool operator<=(A a, B b) { return C(a) <= C(b); } \\
  __device__ inline bool operator>=(A a, B b) { return C(a) >= C(b); } \\
  __device__ inline bool operator==(A a, B b) { return C(a) == C(b); } \\
  __device__ inline bool operator!=(A a, B b) { return C(a) != C(b); }
#define ASSAY_WITH(T, U, C, R) \\
  __device__ inline R operator+(T a, U b) { return R(C(float(a)) + C(b)); } \\
  __device__ inline R operator-(T a, U b) { return R(C(float(a)) - C(b)); } \\
  __device__ inline R operator*(T a, U b) { return R(C(float(a)) * C(b)); } \\
  __device__ inline R operator/(T a, U b) { return R(C(float(a)) / C(b)); } \\
  __device__ inline R operator+(U a, T b) { return R(C(a) + C(float(b))); } \\
  __device__ inline R operator-(U a, T b) { return R(C(a) - C(float(b))); } \\
  __device__ inline R operator*(U a, T b) { return R(C(a) * C(float(b))); } \\
  __device__ inline R operator/(U a, T b) { return R(C(a) / C(float(b))); } \\
  ASSAY_COMPARE(T, U, C) \\
  ASSAY_COMPARE(U, T, C)
#define ASSAY_INTEGER(T, U) \\
  __device__ inline T operator+(T a, U b) { return a + T(float(b)); } \\
  __device__ inline T operator-(T a, U b) { return a - T(float(b)); } \\
  __device__ inline T operator*(T a, U b) { return a * T(float(b)); } \\
  __device__ inline T operator/(T a, U b) { return a / T(float(b)); } \\
  __device__ inline T operator+(U a, T b) { return T(float(a)) + b; } \\
  __device__ inline T operator-(U a, T b) { return T(float(a)) - b; } \\
  __device__ inline T operator*(U a, T b) { return T(float(a)) * b; } \\
  __device__ inline T operator/(U a, T b) { return T(float(a)) / b; } \\
  ASSAY_COMPARE(T, U, float) \\
  ASSAY_COMPARE(U, T, float)
#define ASSAY_OPERATORS(T) \\
  __device__ inline T operator+(T a, T b) { return T(float(a) + float(b)); } \\
  __device__ inline T operator-(T a, T b) { return T(float(a) - float(b)); } \\
  __device__ inline T operator*(T a, T b) { return T(float(a) * float(b)); } \\
  __device__ inline T operator/(T a, T b) { return T(float(a) / float(b)); } \\
  __device__ inline T operator-(T a) { return T(-float(a)); } \\
  __device__ inline T& operator+=(T& a, T b) { return a = a + b; } \\
  __device__ inline T& operator-=(T& a, T b) { return a = a - b; } \\
  __device__ inline T& operator*=(T& a, T b) { return a = a * b; } \\
  __device__ inline T& operator/=(T& a, T b) { return a = a / b; } \\
  __device__ inline float& operator+=(float& a, const T& b) { return a += float(b); } \\
  __device__ inline float& operator-=(float& a, const T& b) { return a -= float(b); } \\
  __device__ inline float& operator*=(float& a, const T& b) { return a *= float(b); } \\
  __device__ inline float& operator/=(float& a, const T& b) { return a /= float(b); } \\
  ASSAY_COMPARE(T, T, float) \\
  ASSAY_WITH(T, float, float, float) \\
  ASSAY_WITH(T, double, double, double) \\
  ASSAY_INTEGER(T, int) \\
  ASSAY_INTEGER(T, unsigned) \\
  ASSAY_INTEGER(T, long) \\
  ASSAY_INTEGER(T, unsigned long) \\
  ASSAY_INTEGER(T, long long) \\
  ASSAY_INTEGER(T, unsigned long long)
ASSAY_OPERATORS(Half)
ASSAY_OPERATORS(BFloat16)
#undef ASSAY_OPERATORS
#undef ASSAY_INTEGER
#undef ASSAY_WITH
#undef ASSAY_COMPARE
}
namespace at { using c10::Half; using c10::BFloat16; }
namespace torch { using c10::Half; using c10::BFloat16; }
",
    },
    Part {
        words: &["CUDA_KERNEL_LOOP", "CUDA_1D_KERNEL_LOOP", "CUDA_KERNEL_LOOP_TYPE"],
        text: "\
#define CUDA_KERNEL_LOOP_TYPE(i, n, T) \\
  for (int64_t assay_index = ((int64_t)blockIdx.x) * blockDim.x + threadIdx.x, assay_once = 1; \\
       assay_index < (n); assay_index += ((int64_t)blockDim.x) * gridDim.x) \\
    for (T i = (T)assay_index, assay_inner = 1; assay_inner; assay_inner = 0)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_1D_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
",
    },
    Part {
        words: &["C10_LAUNCH_BOUNDS_1", "C10_LAUNCH_BOUNDS_2", "C10_HOST_DEVICE", "C10_DEVICE", "C10_RESTRICT",
            "C10_ALWAYS_INLINE", "C10_WARP_SIZE", "WARP_SHFL_DOWN", "WARP_SHFL_XOR", "WARP_SHFL"],
        text: "\
#define C10_LAUNCH_BOUNDS_1(n) __launch_bounds__(n)
#define C10_LAUNCH_BOUNDS_2(n, m) __launch_bounds__(n, m)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_RESTRICT __restrict__
#define C10_ALWAYS_INLINE __forceinline__
#define C10_WARP_SIZE 32
template <typename T> __device__ T WARP_SHFL(T v, int lane, int width = 32, unsigned m = 0xffffffffu) { return __shfl_sync(m, v, lane, width); }
template <typename T> __device__ T WARP_SHFL_DOWN(T v, unsigned d, int width = 32, unsigned m = 0xffffffffu) { return __shfl_down_sync(m, v, d, width); }
template <typename T> __device__ T WARP_SHFL_XOR(T v, int l, int width = 32, unsigned m = 0xffffffffu) { return __shfl_xor_sync(m, v, l, width); }
",
    },
    Part {
        words: &["PackedTensorAccessor32", "PackedTensorAccessor64", "PackedTensorAccessor", "RestrictPtrTraits",
            "DefaultPtrTraits"],
        text: "\
namespace at {
template <typename T> struct DefaultPtrTraits { typedef T* PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };
template <typename T, size_t N, template <typename> class P, typename I> struct TensorAccessor {
  __device__ TensorAccessor(T* d, const I* s, const I* t) : data_(d), sizes_(s), strides_(t) {}
  __device__ I size(I i) const { return sizes_[i]; }
  __device__ I stride(I i) const { return strides_[i]; }
  __device__ T* data() const { return data_; }
  __device__ TensorAccessor<T, N - 1, P, I> operator[](I i) const {
    return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
  T* data_; const I* sizes_; const I* strides_;
};
template <typename T, template <typename> class P, typename I> struct TensorAccessor<T, 1, P, I> {
  __device__ TensorAccessor(T* d, const I* s, const I* t) : data_(d), sizes_(s), strides_(t) {}
  __device__ I size(I i) const { return sizes_[i]; }
  __device__ I stride(I i) const { return strides_[i]; }
  __device__ T* data() const { return data_; }
  __device__ T& operator[](I i) const { return data_[strides_[0] * i]; }
  T* data_; const I* sizes_; const I* strides_;
};
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = int64_t>
struct GenericPackedTensorAccessor {
  __device__ I size(I i) const { return sizes_[i]; }
  __device__ I stride(I i) const { return strides_[i]; }
  __device__ T* data() const { return data_; }
  __device__ TensorAccessor<T, N - 1, P, I> operator[](I i) const {
    return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
  T* data_; I sizes_[N]; I strides_[N];
};
template <typename T, template <typename> class P, typename I> struct GenericPackedTensorAccessor<T, 1, P, I> {
  __device__ I size(I i) const { return sizes_[i]; }
  __device__ I stride(I i) const { return strides_[i]; }
  __device__ T* data() const { return data_; }
  __device__ T& operator[](I i) const { return data_[strides_[0] * i]; }
  T* data_; I sizes_[1]; I strides_[1];
};
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
}
namespace torch {
using at::DefaultPtrTraits; using at::RestrictPtrTraits; using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64; using at::PackedTensorAccessor;
}
",
    },
];

/// The device text with what it needs before it; every line keeps its number. `more` are names that it is to have
/// although it mentions them nowhere: those of template arguments.
pub(crate) fn with_prelude(device: &str, more: &[&str]) -> String {
    let toks = assay_host::lex::lex(device, 0);
    let idents: std::collections::BTreeSet<&str> = toks
        .iter()
        .filter(|t| t.kind == assay_host::lex::Kind::Ident)
        .map(|t| t.text)
        // Macros' bodies count as well.
        .chain(
            toks.iter()
                .filter(|t| t.kind == assay_host::lex::Kind::Directive && !t.text.contains("include"))
                .flat_map(|t| t.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')),
        )
        .chain(more.iter().copied())
        .collect();
    let std_used = toks.windows(2).any(|w| w[0].is("std") && w[1].is("::"));
    // `std::max(…)` and the like: everything of <cmath> and the smaller of <algorithm>.
    let std_name = |name: &str| toks.windows(3).any(|w| w[0].is("std") && w[1].is("::") && w[2].is(name));
    let mut out = String::new();
    for p in PARTS {
        let standard = p.text.starts_with("#include <cuda/std");
        let there = p.words.iter().any(|w| if standard { std_name(w) } else { idents.contains(w) });
        if there {
            out.push_str(p.text);
        }
    }
    if std_used {
        let algorithm = ["min", "max", "clamp", "fill", "copy"].iter().any(|n| std_name(n));
        if algorithm {
            out.push_str("#include <cuda/std/algorithm>\n");
        }
        out.push_str("#include <cuda/std/cmath>\n#include <cuda/std/cstdint>\n#include <cuda/std/cstddef>\n");
        out.push_str("namespace std { using namespace cuda::std; }\n");
    }
    let computes = ["OpMathType", "acc_type", "opmath_type"].iter().any(|w| idents.contains(w));
    if computes && idents.contains("Half") {
        out.push_str(
            "namespace at { template <> struct OpMathType<c10::Half> { using type = float; };\n\
             template <> struct OpMathType<c10::BFloat16> { using type = float; }; }\n",
        );
    }
    if out.is_empty() {
        return device.to_owned();
    }
    out.push_str("#line 1 \"extension.cu\"\n");
    out.push_str(device);
    out
}
