// What the host part of an extension is compiled against where it is compiled for real: PyTorch's headers, and CUDA's
// words for a machine that has neither a GPU nor CUDA's headers. It is the only header that a submission's text gets.
//
// Launches, device memory and copies are calls of the Python object `assay_device.device`, which lives in the process that
// loads the module; nothing is kept here but the configuration of a launch that is about to happen, as nvcc's own stubs
// do it. Work is done when it is asked for, so streams and events are names without a meaning.
//
// What it misses: cuBLAS and cuDNN, textures, graphs, managed memory, peers; half precision has storage and conversions,
// no arithmetic beyond what `float` gives.
#pragma once

#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/Exceptions.h>
#include <torch/library.h>
#ifdef ASSAY_WHOLE
#include <torch/extension.h>
#endif
#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

// What nvcc's and PyTorch's own headers bring along and submissions count on.
#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

// PyTorch has these for nvcc alone.
namespace at {
template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
}  // namespace at

// `AT_DISPATCH_…(x.type(), …)`, which older versions of PyTorch take; a template, so that theirs may stand beside it.
namespace detail {
template <typename T, std::enable_if_t<std::is_same_v<T, at::DeprecatedTypeProperties>, int> = 0>
inline at::ScalarType scalar_type(const T& type) {
  return type.scalarType();
}
}  // namespace detail

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__
#define __managed__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080

// Types.

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
#define ASSAY_VECTORS(T, N, A2, A4)                                                                       \
  struct N##1 { T x; };                                                                                   \
  struct __attribute__((aligned(A2))) N##2 { T x, y; };                                                   \
  struct N##3 { T x, y, z; };                                                                             \
  struct __attribute__((aligned(A4))) N##4 { T x, y, z, w; };                                             \
  inline N##1 make_##N##1(T x) { return {x}; }                                                            \
  inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                    \
  inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                            \
  inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
ASSAY_VECTORS(char, char, 2, 4)
ASSAY_VECTORS(unsigned char, uchar, 2, 4)
ASSAY_VECTORS(short, short, 4, 8)
ASSAY_VECTORS(unsigned short, ushort, 4, 8)
ASSAY_VECTORS(int, int, 8, 16)
ASSAY_VECTORS(float, float, 8, 16)
ASSAY_VECTORS(double, double, 16, 16)
ASSAY_VECTORS(long long, longlong, 16, 16)
#undef ASSAY_VECTORS
struct uint1 { unsigned x; };
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct __half {
  unsigned short bits;
  __half() = default;
  __half(float v) : bits(c10::Half(v).x) {}
  operator float() const { return static_cast<float>(c10::Half(bits, c10::Half::from_bits())); }
};
struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float v) : bits(c10::BFloat16(v).x) {}
  operator float() const { return static_cast<float>(c10::BFloat16(bits, c10::BFloat16::from_bits())); }
};
struct __attribute__((aligned(4))) __half2 { __half x, y; };
struct __attribute__((aligned(4))) __nv_bfloat162 { __nv_bfloat16 x, y; };
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
inline __half __float2half(float v) { return __half(v); }
inline float __half2float(__half v) { return v; }
inline __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
inline float __bfloat162float(__nv_bfloat16 v) { return v; }

// What functions for host and device use of the device's mathematics.
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __powf(float x, float y) { return std::pow(x, y); }
#define ASSAY_LEAST(T)                                     \
  constexpr T min(T a, T b) { return b < a ? b : a; }      \
  constexpr T max(T a, T b) { return a < b ? b : a; }
ASSAY_LEAST(int)
ASSAY_LEAST(unsigned)
ASSAY_LEAST(long)
ASSAY_LEAST(unsigned long)
ASSAY_LEAST(long long)
ASSAY_LEAST(unsigned long long)
ASSAY_LEAST(float)
ASSAY_LEAST(double)
#undef ASSAY_LEAST

// The runtime's names.

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorUnknown = 999 };
using cudaError = cudaError_t;
using CUresult = int;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
struct CUstream_st;
struct CUevent_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using CUstream = cudaStream_t;
inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2,
                          cudaHostAllocDefault = 0;
struct cudaDeviceProp {
  char name[256] = "Assay CPU device";
  size_t totalGlobalMem = size_t(80) << 30, sharedMemPerBlock = 48 << 10, sharedMemPerBlockOptin = 227 << 10,
         sharedMemPerMultiprocessor = 228 << 10;
  int regsPerBlock = 65536, regsPerMultiprocessor = 65536, warpSize = 32, maxThreadsPerBlock = 1024,
      maxThreadsPerMultiProcessor = 2048, multiProcessorCount = 132, major = 9, minor = 0, l2CacheSize = 50 << 20,
      maxBlocksPerMultiProcessor = 32;
  int maxThreadsDim[3] = {1024, 1024, 64};
  int maxGridSize[3] = {2147483647, 65535, 65535};
};

namespace assay_host {
namespace py = pybind11;

/// The device, which is Python's.
inline py::object device() { return py::module_::import("assay_device").attr("device"); }

/// Ends the call: a word of CUDA that this version does not have.
[[noreturn]] inline void unsupported(const char* what) {
  py::gil_scoped_acquire gil;
  device().attr("unsupported")(what);
  throw std::runtime_error(what);
}

/// Stands in the body of a function of the device alone.
[[noreturn]] inline void device_only() { unsupported("a call of a `__device__` function"); }

struct Configuration {
  int line;
  dim3 grid, block;
  size_t shared;
};
inline std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> all;
  return all;
}
/// `<<<grid, block, shared, stream>>>`. The arguments of the launch are evaluated after it, so that there may be several.
inline void configure(int line, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = nullptr) {
  configurations().push_back({line, grid, block, shared});
}

/// A type or a value as NVRTC is to read it, out of what the compiler prints: `… [with T = float; …]`.
inline std::string printed(std::string_view text) {
  auto from = text.find(" = ");
  if (from == std::string_view::npos) return std::string(text);
  from += 3;
  auto to = text.find(';', from);
  if (to == std::string_view::npos) to = text.rfind(']');
  std::string out(text.substr(from, to - from));
  for (std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::", "<unnamed>::"})
    for (auto at = out.find(unnamed); at != std::string::npos; at = out.find(unnamed)) out.erase(at, unnamed.size());
  return out;
}
template <class T> std::string type_name() { return printed(__PRETTY_FUNCTION__); }
template <auto V> std::string value_name() { return printed(__PRETTY_FUNCTION__); }
template <template <class...> class T> std::string template_name() { return printed(__PRETTY_FUNCTION__); }

/// The element type of a pointer as reports name it.
template <class T> const char* element() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, double>) return "f64";
  else if constexpr (std::is_same_v<U, c10::Half> || std::is_same_v<U, __half>) return "f16";
  else if constexpr (std::is_same_v<U, c10::BFloat16> || std::is_same_v<U, __nv_bfloat16>) return "bf16";
  else if constexpr (std::is_same_v<U, bool>) return "bool";
  else if constexpr (std::is_integral_v<U> && sizeof(U) == 8) return std::is_signed_v<U> ? "i64" : "u64";
  else if constexpr (std::is_integral_v<U> && sizeof(U) == 4) return std::is_signed_v<U> ? "i32" : "u32";
  else if constexpr (std::is_integral_v<U> && sizeof(U) == 2) return std::is_signed_v<U> ? "i16" : "u16";
  else if constexpr (std::is_integral_v<U>) return std::is_signed_v<U> ? "i8" : "u8";
  else return "f32";
}

/// One launch: the stub of a kernel fills it with its name, its template arguments and its parameters.
class Launch {
  std::string name_, template_;
  py::gil_scoped_acquire gil_;
  py::list args_;

 public:
  explicit Launch(const char* name) : name_(name) {}
  void argument(const std::string& text) { template_ += (template_.empty() ? "" : ", ") + text; }
  template <class T> void parameter(const char* name, T value) {
    // By value: a reference would keep `__restrict__`, which traits of pointers do not know.
    py::bytes bytes(reinterpret_cast<const char*>(&value), sizeof(T));
    if constexpr (std::is_pointer_v<T>)
      args_.append(py::make_tuple(name, "pointer", bytes, element<std::remove_pointer_t<T>>()));
    else
      args_.append(py::make_tuple(name, std::is_class_v<T> ? "record" : "scalar", bytes, "f32"));
  }
  void go() {
    auto& all = configurations();
    if (all.empty()) throw std::runtime_error("a kernel is called like a function: " + name_);
    Configuration c = all.back();
    all.pop_back();
    std::string name = template_.empty() ? name_ : name_ + "<" + template_ + ">";
    device().attr("launch")(name, py::make_tuple(c.grid.x, c.grid.y, c.grid.z),
                            py::make_tuple(c.block.x, c.block.y, c.block.z), c.shared, c.line, args_);
  }
};

inline cudaError_t& last_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}
inline cudaError_t ended(int code) {
  if (code) last_error() = static_cast<cudaError_t>(code);
  return static_cast<cudaError_t>(code);
}
inline cudaError_t allocate(void** out, size_t bytes, int line) {
  py::gil_scoped_acquire gil;
  auto address = device().attr("allocate")(bytes, line).cast<uintptr_t>();
  *out = reinterpret_cast<void*>(address);
  return ended(address || !bytes ? 0 : cudaErrorMemoryAllocation);
}
inline cudaError_t release(void* pointer) {
  py::gil_scoped_acquire gil;
  return ended(device().attr("release")(reinterpret_cast<uintptr_t>(pointer)).cast<int>());
}
inline cudaError_t copy(void* to, const void* from, size_t bytes) {
  py::gil_scoped_acquire gil;
  return ended(
      device().attr("copy")(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), bytes).cast<int>());
}
inline cudaError_t set(void* to, int value, size_t bytes) {
  py::gil_scoped_acquire gil;
  return ended(device().attr("set")(reinterpret_cast<uintptr_t>(to), value, bytes).cast<int>());
}
inline cudaError_t symbol(const char* name, const void* from, size_t bytes, size_t offset, int line) {
  py::gil_scoped_acquire gil;
  device().attr("symbol")(name, py::bytes(static_cast<const char*>(from), bytes), offset, line);
  return cudaSuccess;
}
inline cudaError_t allow_shared(const char* arguments) {
  py::gil_scoped_acquire gil;
  device().attr("allow_shared")(arguments);
  return cudaSuccess;
}

/// What a pointer to any type is to the runtime.
template <class T> void** cell(T** p) { return reinterpret_cast<void**>(p); }

/// `cudaLaunchKernel` of a kernel whose type is known.
template <class... P, size_t... I>
void unpack(void (*kernel)(P...), void** args, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<P>*>(args[I])...);
}
template <class... P>
cudaError_t launch_kernel(int line, void (*kernel)(P...), dim3 grid, dim3 block, void** args, size_t shared = 0,
                          cudaStream_t = nullptr) {
  configure(line, grid, block, shared);
  unpack(kernel, args, std::index_sequence_for<P...>());
  return cudaSuccess;
}
}  // namespace assay_host

#define cudaMalloc(p, n) ::assay_host::allocate(::assay_host::cell(p), n, __LINE__)
#define cudaMallocAsync(p, n, s) ::assay_host::allocate(::assay_host::cell(p), n, __LINE__)
#define cudaFreeAsync(p, s) ::assay_host::release(p)
inline cudaError_t cudaFree(void* p) { return ::assay_host::release(p); }
template <class T> cudaError_t cudaMallocHost(T** p, size_t n, unsigned = 0) {
  *p = static_cast<T*>(std::calloc(1, n));
  return *p || !n ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T> cudaError_t cudaHostAlloc(T** p, size_t n, unsigned = 0) { return cudaMallocHost(p, n); }
inline cudaError_t cudaFreeHost(void* p) { std::free(p); return cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) { return ::assay_host::copy(to, from, n); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind, cudaStream_t = nullptr) {
  return ::assay_host::copy(to, from, n);
}
inline cudaError_t cudaMemset(void* to, int value, size_t n) { return ::assay_host::set(to, value, n); }
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t = nullptr) {
  return ::assay_host::set(to, value, n);
}
// A variable of the device has a name and no address here; that it is a variable is checked by naming it.
namespace assay_host {
inline cudaError_t symbol_at(int line, const char* name, const void* from, size_t bytes, size_t offset = 0,
                             cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
  return symbol(name, from, bytes, offset, line);
}
}  // namespace assay_host
#define cudaMemcpyToSymbol(variable, ...) ((void)sizeof(variable), ::assay_host::symbol_at(__LINE__, #variable, __VA_ARGS__))
#define cudaMemcpyToSymbolAsync(variable, ...) cudaMemcpyToSymbol(variable, __VA_ARGS__)
#define cudaFuncSetAttribute(...) ::assay_host::allow_shared(#__VA_ARGS__)
#define cudaFuncSetCacheConfig(...) cudaSuccess
#define cudaLaunchKernel(...) ::assay_host::launch_kernel(__LINE__, __VA_ARGS__)

inline cudaError_t cudaGetLastError() {
  auto e = ::assay_host::last_error();
  ::assay_host::last_error() = cudaSuccess;
  return e;
}
inline cudaError_t cudaPeekAtLastError() { return ::assay_host::last_error(); }
inline const char* cudaGetErrorString(cudaError_t e) {
  return e == cudaSuccess ? "no error" : e == cudaErrorInvalidValue ? "invalid argument" : e == cudaErrorMemoryAllocation ? "out of memory" : "unknown error";
}
inline const char* cudaGetErrorName(cudaError_t e) {
  return e == cudaSuccess ? "cudaSuccess" : e == cudaErrorInvalidValue ? "cudaErrorInvalidValue" : e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) { *p = cudaDeviceProp(); return cudaSuccess; }
inline cudaError_t cudaMemGetInfo(size_t* left, size_t* all) {
  *left = size_t(72) << 30;
  *all = size_t(80) << 30;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr which, int) {
  cudaDeviceProp p;
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock: *v = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrWarpSize: *v = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *v = p.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *v = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *v = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *v = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *v = static_cast<int>(p.sharedMemPerMultiprocessor); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = static_cast<int>(p.sharedMemPerBlockOptin); break;
    default: ::assay_host::unsupported("`cudaDeviceGetAttribute` of this attribute");
  }
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = nullptr; return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = nullptr; return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* e, unsigned = 0) { *e = nullptr; return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { *e = nullptr; return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { *ms = 0; return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }

// PyTorch's words for the same.

#undef C10_CUDA_CHECK
#undef AT_CUDA_CHECK
#undef C10_CUDA_KERNEL_LAUNCH_CHECK
#define C10_CUDA_CHECK(...)                                                                               \
  do {                                                                                                    \
    const cudaError_t assay_error = (__VA_ARGS__);                                                        \
    TORCH_CHECK(assay_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(assay_error));             \
  } while (0)
#define AT_CUDA_CHECK(...) C10_CUDA_CHECK(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())

namespace c10::cuda {
struct CUDAStream {
  operator cudaStream_t() const { return nullptr; }
  cudaStream_t stream() const { return nullptr; }
  void synchronize() const {}
  bool query() const { return true; }
  int device_index() const { return 0; }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, int = -1) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}
inline int current_device() { return 0; }
inline int device_count() { return 1; }
inline void set_device(int) {}
inline void device_synchronize() {}
struct CUDAGuard {
  CUDAGuard() = default;
  template <class T> explicit CUDAGuard(const T&) {}
  template <class T> void set_device(const T&) {}
  template <class T> void set_index(const T&) {}
};
using OptionalCUDAGuard = CUDAGuard;
using CUDAStreamGuard = CUDAGuard;
}  // namespace c10::cuda
namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::setCurrentCUDAStream;
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp p;
  return &p;
}
inline cudaDeviceProp* getDeviceProperties(int) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }
}  // namespace at::cuda
