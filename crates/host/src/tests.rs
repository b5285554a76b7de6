//! Launchers and what they plan.

use super::*;

/// Kernels that the launchers below call.
const KERNELS: &str = "
#define BLOCK 256
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
constexpr int kTile = 16;
const float kScale = 0.5f;
static const int kHalf = BLOCK / 2, kTwice = 2 * BLOCK;
__global__ void k(const float* x, float* y, int n) {}
template <typename T, int B> __global__ void t(const T* x, T* y, T s) {}
template <int B = 128, bool TAIL = false> __global__ void d(float* y) {}
__global__ void args(long long a, float b, double c, bool e, unsigned char f, const float4* g) {}
namespace deep { __global__ void inner() {} }
static inline int cdiv(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int twice(int a) { return 2 * a; }
__device__ float only_device(float a) { return a; }
template <int B, typename T> void run(const T* x, T* y, int n) { t<T, B><<<n / B, B>>>(x, y, T(1)); }
int fact(int n) { return n <= 1 ? 1 : n * fact(n - 1); }
int forever(int n) { return forever(n + 1); }
";

/// `launch` with these statements, on x, y: float[…], z: int[…], n = 1000, m = 7, neg = -1, big = 2^40, s = 0.1.
fn program(body: &str) -> Result<HostProgram, HostError> {
    HostProgram::parse(&format!(
        "{KERNELS}void launch(const float* x, float* y, int* z, int n, int m, int neg, long long big, float s) {{\n{body}\n}}\n"
    ))
}

fn bindings() -> Bindings {
    let mut b = Bindings::default();
    b.buffers.insert("x".into(), Some(DType::F32));
    b.buffers.insert("y".into(), None);
    b.buffers.insert("z".into(), Some(DType::I32));
    for (name, v) in [("n", 1000), ("m", 7), ("neg", -1), ("big", 1 << 40)] {
        b.ints.insert(name.into(), v);
    }
    b.floats.insert("s".into(), 0.1);
    b
}

fn plan(body: &str) -> Result<Plan, HostError> {
    program(body)?.plan(&bindings())
}

/// The trace of `k<<<value, 1>>>(x, y, value)` shows a value.
fn value(expression: &str) -> String {
    let p = plan(&format!("args<<<1, 1>>>({expression}, 0, 0, 0, 0, nullptr);"))
        .unwrap_or_else(|e| panic!("{expression}: {e}"));
    match &p.launches().next().unwrap().args[0] {
        PlanArg::Int(v, 64) => v.to_string(),
        other => panic!("{expression}: {other:?}"),
    }
}

#[test]
fn launches_leave_the_traces_that_cuda_would_see() {
    let cases: [(&str, &str); 22] = [
        ("k<<<n, 256>>>(x, y, n);", "launch k grid 1000,1,1 block 256,1,1 shared 0 (x+0, y+0, i32:1000)\n"),
        (
            "dim3 grid(CEIL_DIV(n, BLOCK), m); dim3 block(kTile, kTile); k<<<grid, block, n * sizeof(float), 0>>>(x + n, y, n);",
            "launch k grid 4,7,1 block 16,16,1 shared 4000 (x+4000, y+0, i32:1000)\n",
        ),
        (
            "dim3 g; g.x = 3; g.z += 2; k<<<g, dim3(2, 3, 4)>>>(x, y, g.z);",
            "launch k grid 3,1,3 block 2,3,4 shared 0 (x+0, y+0, i32:3)\n",
        ),
        (
            "dim3 g(n); dim3 h = dim3(m, 2); dim3 i{3}; dim3 j = g; k<<<j, h>>>(x, y, i.x);",
            "launch k grid 1000,1,1 block 7,2,1 shared 0 (x+0, y+0, i32:3)\n",
        ),
        // Templates: constants of every kind, defaults, branches.
        (
            "t<float, BLOCK><<<1, 1>>>(x, y, s);",
            "launch t<float,256> grid 1,1,1 block 1,1,1 shared 0 (x+0, y+0, f32:0.10000000149011612:3dcccccd)\n",
        ),
        (
            "constexpr int B = kTile * 2; t<float, B / 2><<<1, B>>>(x, y, 2);",
            "launch t<float,16> grid 1,1,1 block 32,1,1 shared 0 (x+0, y+0, f32:2:40000000)\n",
        ),
        (
            "t<float, (3 > 2)><<<1, 1>>>(x, y, 1.5);",
            "launch t<float,1> grid 1,1,1 block 1,1,1 shared 0 (x+0, y+0, f32:1.5:3fc00000)\n",
        ),
        (
            "d<><<<1, 1>>>(y); d<64, true><<<1, 1>>>(y);",
            "launch d<128,false> grid 1,1,1 block 1,1,1 shared 0 (y+0)\nlaunch d<64,true> grid 1,1,1 block 1,1,1 shared 0 (y+0)\n",
        ),
        (
            "if (n % 4 == 0) { d<4><<<1, 1>>>(y); } else d<1><<<1, 1>>>(y);",
            "launch d<4,false> grid 1,1,1 block 1,1,1 shared 0 (y+0)\n",
        ),
        (
            "run<twice(64), float>(x, y, n);",
            "launch t<float,128> grid 7,1,1 block 128,1,1 shared 0 (x+0, y+0, f32:1:3f800000)\n",
        ),
        ("deep::inner<<<1, 1>>>();", "launch deep::inner grid 1,1,1 block 1,1,1 shared 0 ()\n"),
        // Arguments take the kernel's types.
        (
            "args<<<1, 1>>>(n, s, s, n, -1, reinterpret_cast<const float4*>(x) + 1);",
            "launch args grid 1,1,1 block 1,1,1 shared 0 (i64:1000, f32:0.10000000149011612:3dcccccd, f64:0.10000000149011612:3fb99999a0000000, i8:1, i8:255, x+16)\n",
        ),
        (
            "args<<<1, 1>>>(n, kScale, 0.1, false, 300, nullptr);",
            "launch args grid 1,1,1 block 1,1,1 shared 0 (i64:1000, f32:0.5:3f000000, f64:0.1:3fb999999999999a, i8:0, i8:44, null)\n",
        ),
        // A wrong number of arguments is the device's business.
        ("k<<<1, 1>>>(x);", "launch k grid 1,1,1 block 1,1,1 shared 0 (x+0)\n"),
        // Negative and zero extents pass on.
        (
            "k<<<neg, n - n>>>(x, y, n);",
            "launch k grid 4294967295,1,1 block 0,1,1 shared 0 (x+0, y+0, i32:1000)\n",
        ),
        (
            "k<<<dim3(1, neg), 1, neg>>>(x, y, n);",
            "launch k grid 1,4294967295,1 block 1,1,1 shared 18446744073709551615 (x+0, y+0, i32:1000)\n",
        ),
        // Scratch, memset, pointers.
        (
            "float* p = scratch<float>(2 * n); auto* q = scratch<float4>(m); cudaMemsetAsync(p + 1, 0, n * sizeof(float), 0); k<<<1, 1>>>(p + n, &y[m], n);",
            "scratch p f32[2000]\nscratch q f32[28]\nmemset p+4 value 0 bytes 4000\nlaunch k grid 1,1,1 block 1,1,1 shared 0 (p+4000, y+28, i32:1000)\n",
        ),
        (
            "for (int i = 0; i < 2; ++i) { float* p = scratch<float>(i); k<<<1, 1>>>(x, p, i); }",
            "scratch p f32[0]\nscratch p#2 f32[1]\nlaunch k grid 1,1,1 block 1,1,1 shared 0 (x+0, p+0, i32:0)\nlaunch k grid 1,1,1 block 1,1,1 shared 0 (x+0, p#2+0, i32:1)\n",
        ),
        (
            "const float* a = x; float* b = y; a += 2; b = b - 1; k<<<1, 1>>>(a, b, a != nullptr);",
            "launch k grid 1,1,1 block 1,1,1 shared 0 (x+8, y-4, i32:1)\n",
        ),
        // Calls that change nothing, and control flow.
        (
            "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 99 * 1024); int i = 5; while (true) { if (--i == 2) break; else continue; } k<<<i, 1>>>(x, y, n); cudaGetLastError();",
            "launch k grid 2,1,1 block 1,1,1 shared 0 (x+0, y+0, i32:1000)\n",
        ),
        (
            "int i = 0; do { i += 3; } while (i < n / 2); for (int a = 0, b = 9; a < b; a++, --b) i++; k<<<i, 1>>>(x, y, i); if (i > 1) return; k<<<1, 1>>>(x, y, i);",
            "launch k grid 506,1,1 block 1,1,1 shared 0 (x+0, y+0, i32:506)\n",
        ),
        (
            "#ifdef __CUDA_ARCH__\nnonsense\n#else\nk<<<kHalf, kTwice>>>(x, y, /* n */ n); // end\n#endif",
            "launch k grid 128,1,1 block 512,1,1 shared 0 (x+0, y+0, i32:1000)\n",
        ),
    ];
    for (body, want) in cases {
        let p = plan(body).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert_eq!(p.trace(), want, "of {body}");
    }
}

#[test]
fn expressions_have_cpp_values() {
    for (e, want) in [
        ("1 + 2 * 3 - 4 / 2 % 3", "5"),
        ("(n - 1) / 2 * 2", "998"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("1 << 10 | 5 & 4 ^ 1", "1029"),
        ("~0", "-1"),
        ("!n + !!n", "1"),
        ("n > 5 && m < 5 || neg == -1", "1"),
        ("n > 5 ? m : neg", "7"),
        // Unsigned arithmetic wraps, comparisons convert.
        ("0u - 1", "4294967295"),
        ("neg < 1u", "0"),
        ("sizeof(float) * neg > 0", "1"),
        ("(unsigned char)300", "44"),
        ("static_cast<short>(40000)", "-25536"),
        ("(int)(big + 5)", "5"),
        ("int(big >> 38)", "4"),
        ("3'000'000'000", "3000000000"),
        ("0x7fffffff + 0u", "2147483647"),
        ("0xffffffff", "4294967295"),
        ("-1 >> 1", "-1"),
        ("017 + 0b101", "20"),
        ("0.1f == 0.1", "0"),
        ("(int)(s * 1000.0f)", "100"),
        ("(long long)(2.9 + 0.2)", "3"),
        ("(int)ceilf(n / 3.0f)", "334"),
        ("(int)(1.0f / sqrtf(0.25f))", "2"),
        ("min(n, m) + std::max(3, m)", "14"),
        ("min(neg, 5u)", "5"),
        ("cdiv(n, 3) + twice(m) + fact(5)", "468"),
        ("std::min<int>", ""),
        ("sizeof(float4) + sizeof(x != x ? 1 : 2)", ""),
        ("INT_MAX", "2147483647"),
        ("(n, m)", "7"),
        ("true + 1", "2"),
        ("(size_t)neg / 2", "9223372036854775807"),
        ("&x[n] - x", "1000"),
        ("n * 1LL * n * n * n", "1000000000000"),
        ("(m > 3 ? 1 : 2LL) << 40", "1099511627776"),
    ] {
        if want.is_empty() {
            assert!(matches!(program(&format!("int v = {e};")), Err(HostError::Unsupported { .. })), "{e}");
        } else {
            assert_eq!(value(e), want, "{e}");
        }
    }
}

#[test]
fn signed_overflow_wraps_with_a_note() {
    let p = plan("int v = n * n * n * n;\nk<<<1, 1>>>(x, y, v);").unwrap();
    assert_eq!(p.launches().next().unwrap().args[2], PlanArg::Int(-727_379_968, 32));
    assert_eq!(p.notes.len(), 1);
    assert!(p.notes[0].contains("`int` overflow, 1000000000000 wraps to -727379968"), "{:?}", p.notes);
    assert!(plan("unsigned v = n * 1u * n * n * n; k<<<1, 1>>>(x, y, v);").unwrap().notes.is_empty());
}

#[test]
fn wrong_host_code_ends_as_fault_or_exhausted() {
    for (body, what) in [
        ("int v = n / (m - 7);", "division by zero"),
        ("int v = n % 0;", "division by zero"),
        ("int v = (-2147483647 - 1) / neg;", "does not fit"),
        ("int v = n << 32;", "shift"),
        ("int v = n >> neg;", "shift"),
        ("int v; int w = v + 1;", "before it has a value"),
        ("int v; v++;", "before it has a value"),
        ("const int v = 1 / (n - 1000);", "division by zero"),
        ("float* p = scratch<float>(neg);", "does not fit"),
        ("const float* p = x + big * big;", "long` overflow"),
        ("const float* p = x + (big << 22);", "address space"),
        ("int v = x - y;", "two tensors"),
        ("bool v = x < y;", "two tensors"),
        ("assert(n < 0 && \"n is negative\");", "assert"),
        ("cudaMemset(nullptr, 0, 4);", "null"),
    ] {
        match plan(body) {
            Err(HostError::Fault { what: w, line, .. }) => {
                assert!(w.contains(what), "{body}: {w}");
                assert_eq!(line, KERNELS.lines().count() as u32 + 2, "{body}");
            }
            // Wraps with a note, and the wrapped value is harmless.
            Ok(p) if what.contains("overflow") => assert!(p.notes[0].contains(what), "{:?}", p.notes),
            other => panic!("{body}: {other:?}"),
        }
    }
    for body in [
        "while (true) {}",
        "for (;;) { k<<<1, 1>>>(x, y, n); }",
        "for (int i = 0; i < n; i--) {}",
        "do { int i = 0; } while (n);",
        "int v = forever(1);",
        "for (;;) { float* p = scratch<float>(1); }",
    ] {
        assert!(
            matches!(plan(body), Err(HostError::Exhausted { .. })),
            "{body}: {:?}",
            plan(body).map(|p| p.ops.len())
        );
    }
}

#[test]
fn code_that_no_compiler_takes_is_invalid() {
    for body in [
        "const int v = 1; v = 2;",
        "const int v = n; v += 2;",
        "const float* p = x; float* q = p;",
        "float* p = z;",
        "k<<<1, 1>>>(z, y, n);",
        "k<<<1, 1>>>(x, x, n);",
        "k<<<1>>>(x, y, n);",
        "k<<<1, 1, 0, 0, 0>>>(x, y, n);",
        "int v = cdiv(1);",
        "float v = only_device(1.0f);",
        "int v = x;",
        "5 = n;",
        "int v = n +;",
        "k<<<x, 1>>>(x, y, n);",
        "d<1, true, 3><<<1, 1>>>(y);",
        "int v = s % 2;",
        "if (dim3(1)) return;",
        "dim3 g(1, 2, 3, 4);",
        "auto v;",
        "void v = 3;",
        "int v = 09;",
    ] {
        let got = plan(body);
        assert!(matches!(got, Err(HostError::Invalid { .. })), "{body}: {:?}", got.map(|p| p.trace()));
    }
}

#[test]
fn what_is_outside_the_subset_says_what_and_where() {
    for (body, construct, column) in [
        ("  switch (n) { case 1: break; }", "`switch`", 3),
        ("int a[3];", "the array `a`", 5),
        ("std::vector<int> v;", "", 1),
        ("Foo f = n;", "the type `Foo`", 1),
        ("int v = x[0];", "reading device memory", 10),
        ("int v = *z;", "reading device memory", 9),
        ("auto f = [&](int i) { return i; };", "", 10),
        ("int v = unknown + 1;", "the name `unknown`", 9),
        ("printf(\"x\");", "a call of `printf`", 1),
        ("cudaMalloc(&y, 4);", "a call of `cudaMalloc`", 1),
        ("nothere<<<1, 1>>>(x);", "a launch of `nothere`", 1),
        ("d<n><<<1, 1>>>(y);", "compile-time constant", 3),
        ("t<<<1, 1>>>(x, y, s);", "template argument `T`", 1),
        ("int& r = n;", "a reference variable", 4),
        ("goto end;", "`goto`", 1),
        ("int v = 'a';", "a character", 9),
        ("float* p = scratch<Foo>(3);", "scratch of type `Foo`", 12),
    ] {
        match plan(body) {
            Err(HostError::Unsupported { construct: c, line, column: at }) => {
                assert!(c.contains(construct), "{body}: {c}");
                assert_eq!((line, at), (KERNELS.lines().count() as u32 + 2, column), "{body}: {c}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn kernels_in_branches_not_taken_are_listed() {
    let p = program("if (n > 1) d<1><<<1, 1>>>(y); else if (m) { d<2><<<1, 1>>>(y); } while (false) run<32, float>(x, y, n);").unwrap();
    assert_eq!(p.kernels(), ["d<1,false>", "d<2,false>", "t<float,32>"]);
}

#[test]
fn normalised_text_sees_tokens_alone() {
    let text = |body: &str| program(body).unwrap().normalised().to_owned();
    let a = text("k<<<cdiv(n, BLOCK), BLOCK>>>(x, y, n);");
    assert_eq!(a, text("  k <<< cdiv( n , BLOCK ),BLOCK>>>(x,y,  /* c */ n) ;\n\n"));
    assert_ne!(a, text("k<<<cdiv(n, BLOCK), BLOCK>>>(x, y, m);"));
    // Through macros, helpers and constants.
    let parse = |s: &str| HostProgram::parse(s).unwrap().normalised().to_owned();
    let file = |b: &str, h: &str, c: &str, other: &str| {
        parse(&format!(
            "#define B {b}\nconst int C = {c};\nint h(int n) {{ return {h}; }}\nint unused() {{ return {other}; }}\n__global__ void k() {{}}\nvoid launch(int n) {{ k<<<h(n), B + C>>>(); }}"
        ))
    };
    let base = file("1", "n", "2", "1");
    assert_eq!(base, file("1", "n", "2", "9"));
    assert_ne!(base, file("3", "n", "2", "1"));
    assert_ne!(base, file("1", "n + 1", "2", "1"));
    assert_ne!(base, file("1", "n", "3", "1"));
}

#[test]
fn parameters_bind_by_name_and_type() {
    let p = program("").unwrap();
    let mut b = bindings();
    b.ints.remove("m");
    assert!(matches!(p.plan(&b), Err(HostError::Unbound { parameter, line: 18, .. }) if parameter == "m"));
    let mut b = bindings();
    b.buffers.insert("x".into(), Some(DType::F64));
    let e = p.check(&b).unwrap_err();
    assert!(e.to_string().contains("`float*` cannot hold its dtype `f64`"), "{e}");
    b.buffers.remove("x");
    assert!(p.check(&b).is_err());
    assert!(matches!(HostProgram::parse("__global__ void launch() {}"), Err(HostError::NoLaunch)));
    assert!(matches!(
        HostProgram::parse("void launch() {} void launch(int n) {}"),
        Err(HostError::Unsupported { .. })
    ));
}

#[test]
fn hostile_host_code_ends_in_an_error() {
    let deep = |open: &str, close: &str| format!("int v = {}1{};", open.repeat(20_000), close.repeat(20_000));
    for body in [
        deep("(", ")"),
        deep("-", ""),
        deep("!", ""),
        deep("1+", ""),
        deep("1?", ":1"),
        deep("int(", ")"),
        "{".repeat(20_000) + &"}".repeat(20_000),
        "if (n) ".repeat(20_000) + ";",
        "int v = fact(20000);".to_owned(),
        format!("int v = {};", "cdiv(".repeat(5_000)),
    ] {
        assert!(plan(&body).is_err(), "{}", &body[..40]);
    }
    // A template that instantiates itself for ever.
    let bomb = "template <int N> void f() { f<N + 1>(); }\n__global__ void k() {}\nvoid launch() { f<0>(); }";
    assert!(HostProgram::parse(bomb).is_err());
    let bomb = "const int a = b + 1; const int b = a + 1;\nvoid launch() { int c = a; }";
    assert!(HostProgram::parse(bomb).is_err());
}
