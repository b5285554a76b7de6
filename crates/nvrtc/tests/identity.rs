//! What changes a kernel's identity, and what does not.

mod common;

use std::collections::BTreeSet;

use assay_nvrtc::{Limits, Options, Unit};
use common::{compiler, compiler_with, single, unit};

/// Kernels with everything that an identity has to see through. The kernel is `k` or what stands behind the bar.
const VARIETY: &[(&str, &[&str])] = &[
    (
        "__constant__ float table[4] = {1, 2, 3, 4};\n__constant__ int other[2] = {5, 6};\n\
         __global__ void k(float* x, int n) { x[n] = table[n & 3] + other[n & 1] + table[1]; }",
        &["k"],
    ),
    (
        "__constant__ double table[8] = {3, 1, 4, 1, 5, 9, 2, 6};\n__global__ void k(double* x, int n) { x[n] = \
         table[n & 7]; }",
        &["k"],
    ),
    (
        "__shared__ float shared_by_all[32];\n__global__ void k(float* x, int n) { __shared__ float a[64]; \
         __shared__ double b[16]; a[threadIdx.x] = x[n]; b[n] = 1; shared_by_all[n & 31] = 2; __syncthreads(); \
         x[0] = a[n] + b[1] + shared_by_all[1]; }\n__global__ void other(float* x) { shared_by_all[0] = x[1]; \
         __syncthreads(); x[0] = shared_by_all[threadIdx.x]; }",
        &["k", "other"],
    ),
    (
        "extern __shared__ float dynamic[];\n__global__ void __launch_bounds__(128) k(float* x, int n) { \
         dynamic[threadIdx.x] = x[n]; __syncthreads(); x[0] = dynamic[n]; }",
        &["k"],
    ),
    (
        "__device__ int counter;\n__device__ float weights[3] = {1, 2, 3};\n__device__ const float* where[2] = \
         {weights + 1, weights};\n__global__ void k(float* x, int n) { atomicAdd(&counter, 1); x[n] = where[n][0] + \
         weights[n]; }",
        &["k"],
    ),
    (
        "__device__ __noinline__ float leaf(float a, int n) { __shared__ float s[8]; s[n & 7] = a; __syncthreads(); \
         return s[0] / a; }\n__device__ __noinline__ float root(float a, int n) { return n > 0 ? leaf(a, n) + \
         leaf(a, 1) : sinf(a); }\n__global__ void k(float* x, int n) { x[n] = root(x[0], n); }\n\
         __global__ void other(float* x, int n) { x[n] = leaf(x[0], n); }",
        &["k", "other"],
    ),
    (
        "__global__ void k(float* x, int n) { if (n == 3) printf(\"value %f at %d\\n\", x[0], n); x[1] = n; }",
        &["k"],
    ),
    (
        "struct Scale { float by; __device__ float operator()(float v) const { return v * by; } };\n\
         template <typename T, int N, typename F> __global__ void each(T* x, F f) { _Pragma(\"unroll\") \
         for (int i = 0; i < N; ++i) x[i] = f(x[i]); }\n",
        &["each<float, 4, Scale>"],
    ),
    (
        "struct Scale { float by; __device__ float operator()(float v) const { return v * by; } };\n\
         template <typename T, int N, typename F> __global__ void each(T* x, F f) { for (int i = 0; i < N; ++i) \
         x[i] = f(x[i]); }\n",
        &["each<float, 4, Scale>", "each<double,2,Scale>"],
    ),
    (
        "#include <cuda_fp16.h>\n__global__ void k(__half2* x, double* d, int n) { x[n] = h2exp(__hfma2(x[0], x[1], \
         x[2])); d[n] = sin(d[0]) / d[1] + fmod(d[2], d[3]) + sqrt(d[4]); float a[40]; for (int i = 0; i < 40; ++i) \
         a[i] = d[i]; d[9] = a[n]; }",
        &["k"],
    ),
    (
        "__global__ void k(float* x, int n) { switch (n) { case 0: x[1] = 1; break; case 1: x[2] = 9 * x[7]; break; \
         case 2: x[3] = expf(x[1]); break; case 3: x[4] = x[5] * logf(x[9]); break; case 4: x[9] = sinf(x[9]); \
         break; case 5: x[7] = x[2] + x[0]; break; case 6: x[9] = 4; break; case 7: x[99] = x[99] + 1; } }",
        &["k"],
    ),
    (
        "__device__ __noinline__ float a(float x) { return x + 1; }\n__device__ __noinline__ float b(float x) { return \
         x * 2; }\n__device__ float (*table[2])(float) = {a, b};\n__global__ void k(float* x, int n) { x[n] = \
         table[n](x[0]); }",
        &["k"],
    ),
    (
        "#define TILE 16\n__global__ void k(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) \
         { __shared__ float as[TILE][TILE], bs[TILE][TILE]; float s = 0; for (int t = 0; t < n / TILE; ++t) { \
         as[threadIdx.y][threadIdx.x] = a[t]; bs[threadIdx.y][threadIdx.x] = b[t]; __syncthreads(); for (int i = 0; \
         i < TILE; ++i) s += as[threadIdx.y][i] * bs[i][threadIdx.x]; __syncthreads(); } c[0] = s; }",
        &["k"],
    ),
    (
        "__global__ void k(float* x, int n) { float v = x[threadIdx.x]; for (int o = 16; o; o >>= 1) v += \
         __shfl_down_sync(0xffffffffu, v, o); float4 f = reinterpret_cast<float4*>(x)[n]; x[0] = v + f.x * f.w + \
         __fdividef(v, f.y) + powf(v, f.z); }",
        &["k"],
    ),
];

fn units(cases: &[(&str, &[&str])]) -> Vec<Unit> {
    cases.iter().map(|(source, kernels)| unit(source, kernels)).collect()
}

#[test]
fn identity_is_the_same_alone_and_in_every_batch() {
    let all = units(VARIETY);
    let alone: Vec<_> = all.iter().map(|u| single(u).identity).collect();
    let wide = compiler_with(Limits { batch_units: 64, ..Limits::default() });
    let orders: [Vec<usize>; 3] = [
        (0..all.len()).collect(),
        (0..all.len()).rev().collect(),
        (0..2 * all.len()).map(|i| (i * 5 + 3) % all.len()).collect(),
    ];
    for order in orders {
        let batch: Vec<Unit> = order.iter().map(|&i| all[i].clone()).collect();
        let results = wide.compile(&Options::default(), &batch);
        let calls: BTreeSet<*const u8> = results.iter().flatten().map(|i| i.ptx.as_ptr()).collect();
        assert!(calls.len() <= order.len() / 2, "{} calls for {} units", calls.len(), order.len());
        for (&index, result) in order.iter().zip(results) {
            let image = result.unwrap_or_else(|e| panic!("{e}\n{}", all[index].source));
            assert_eq!(image.identity, alone[index], "{}", all[index].source);
            for entry in image.entries.values() {
                assert!(image.ptx.contains(entry.as_str()));
            }
        }
    }
    let distinct: BTreeSet<_> = alone.iter().flat_map(|i| i.values()).collect();
    // Two cases are the same kernel but for a pragma that the compiler follows anyway.
    assert!(distinct.len() + 1 >= alone.iter().map(|i| i.len()).sum::<usize>());
}

#[test]
fn changes_that_the_code_bytes_do_not_show_change_the_identity() {
    let pairs: &[(&str, &str, &str)] = &[
        (
            "__global__ void k(float* x, int n) { __shared__ float s[64]; s[n] = x[n]; __syncthreads(); x[0] = s[1]; }",
            "s[64]",
            "s[65]",
        ),
        (
            "__constant__ float t[4] = {1, 2, 3, 4};\n__global__ void k(float* x, int n) { x[n] = t[n]; }",
            "2, 3, 4}",
            "2, 3, 5}",
        ),
        (
            "__constant__ float t[4] = {1, 2, 3, 4};\n__global__ void k(float* x, int n) { x[n] = t[n]; }",
            "t[4]",
            "t[5]",
        ),
        ("__device__ int g[2] = {1, 2};\n__global__ void k(int* x, int n) { x[n] = g[n]++; }", "2};", "3};"),
        ("__device__ int g[2];\n__global__ void k(int* x, int n) { x[n] = g[n]++; }", "g[2]", "g[3]"),
        ("__global__ void __launch_bounds__(256) k(float* x) { x[threadIdx.x] = 1; }", "256", "128"),
        ("__global__ void k(float* x) { if (x[0] > 1) printf(\"a\\n\"); }", "\"a", "\"b"),
        (
            "__constant__ float a[2] = {1, 2}; __constant__ float b[2] = {1, 3};\n__global__ void k(float* x, int n) { \
             x[n] = a[n]; }",
            "x[n] = a[n]",
            "x[n] = b[n]",
        ),
        (
            "__global__ void k(float* x, int n) { __shared__ float a[32], b[32]; a[n] = x[n]; b[n] = x[n + 1]; \
             __syncthreads(); x[0] = a[1]; x[1] = b[2]; }",
            "x[0] = a[1]",
            "x[0] = b[1]",
        ),
        (
            "__device__ __noinline__ float f(float a) { return a + 1; }\n__global__ void k(float* x) { x[0] = f(x[1]); }",
            "a + 1",
            "a + 2",
        ),
        (
            "__constant__ float t[2] = {1, 2};\n__device__ const float* p[1] = {t};\n__global__ void k(float* x, int n) \
             { x[n] = p[n][0]; }",
            "{1, 2}",
            "{1, 4}",
        ),
    ];
    let mut all = Vec::new();
    for (source, from, to) in pairs {
        assert!(source.contains(from), "{source}");
        all.push(unit(source, &["k"]));
        all.push(unit(&source.replacen(from, to, 1), &["k"]));
    }
    let images = compiler().compile(&Options::default(), &all);
    for (pair, images) in pairs.iter().zip(images.chunks(2)) {
        let [a, b] = images else { unreachable!("chunks of two") };
        let (a, b) = (a.as_ref().unwrap(), b.as_ref().unwrap());
        assert_ne!(a.identity["k"], b.identity["k"], "{} to {} in {}", pair.1, pair.2, pair.0);
    }
}

#[test]
fn changes_that_mean_nothing_keep_the_identity() {
    let base = "__constant__ float table[2] = {1, 2};\n__device__ __noinline__ float f(float v) { return v + \
                table[0]; }\n__global__ void k(float* x, int n) { __shared__ float s[8]; s[n] = x[n]; \
                __syncthreads(); float sum = f(s[0]) + table[n]; x[0] = sum; }";
    let variants = [
        base.to_owned(),
        base.replace("sum", "total"),
        base.replace("table", "weights"),
        base.replace(" s[", " tile[").replace("f(s[", "f(tile["),
        format!("// a comment\n\n\n{base}\n"),
        base.replace("; ", ";\n\n  // a comment\n  "),
        format!(
            "__constant__ int unused[100] = {{1}};\n__global__ void another(int* x) {{ x[0] = unused[x[1]]; }}\n{base}"
        ),
        base.replace("table[n];", "(table[n]);"),
    ];
    let all: Vec<Unit> = variants.iter().map(|v| unit(v, &["k"])).collect();
    let images = compiler().compile(&Options::default(), &all);
    let first = images[0].as_ref().unwrap();
    for (variant, image) in variants.iter().zip(&images) {
        assert_eq!(image.as_ref().unwrap().identity["k"], first.identity["k"], "{variant}");
    }
}
