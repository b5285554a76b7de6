//! What single rules do, one line each, and what no rule touches.

mod common;

use assay_mutate::{MutateError, mutants_by, mutants_in, rule_named};
use common::mutants_of;

fn check(cases: &[(&str, &str, &[&str])]) {
    let mut wrong = Vec::new();
    for (id, snippet, want) in cases {
        let rule = rule_named(id).unwrap_or_else(|| panic!("no rule {id}"));
        let got = mutants_of(rule, snippet);
        if got != *want {
            wrong.push(format!("{id}: `{snippet}`\n  gives {got:?}\n  not   {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arithmetic_rules_keep_to_their_operators() {
    check(&[
        ("AddToSub", "s = a + b + c;", &["s = a - b + c;", "s = a + b - c;"]),
        ("AddToSub", "const float* p = x + i;", &["const float* p = x - i;"]),
        ("AddToSub", "const float* p = i + x;", &[]),
        ("AddToSub", "int r = (n + 15) / 16;", &[]),
        ("AddToSub", "y[i] = a + b; y[j] = a + b;", &["y[i] = a - b; y[j] = a + b;"]),
        ("SubToAdd", "y[i] = a - b;", &["y[i] = a + b;"]),
        ("SubToAdd", "int r = (n + m - 1) / m;", &[]),
        ("MulToDiv", "float* p = y; *p = a;", &[]),
        ("MulToDiv", "int r = n * 0;", &[]),
        ("ModToDiv", "int r = i % 32;", &["int r = i / 32;"]),
        (
            "CompoundAssignSign",
            "for (int q = 0; q < n; q += 2) s *= a;",
            &["for (int q = 0; q < n; q += 2) s /= a;"],
        ),
        ("CompoundAssignSign", "while (n > 1) n /= 2;", &[]),
        ("ShiftDirection", "int r = (n + 31) >> 5;", &[]),
        ("BitwiseConfusion", "const float* p = &x[i];", &[]),
        ("OffByOneConstant", "int r = 7u + i;", &["int r = 8u + i;"]),
        ("OffByOneConstant", "unsigned r = 0xffffffffu;", &[]),
        ("OffByOneConstant", "for (int q = 0; q < 4; ++q) s += a;", &[]),
        ("OffByOneConstant", "k<<<n, 256>>>(x, w, y, 3, m);", &[]),
        ("NegationDropped", "s = -1.0f; c = -INFINITY;", &[]),
        ("NegationDropped", "s = expf(-a);", &["s = expf(a);"]),
    ]);
}

#[test]
fn indexing_rules_know_arrays_and_launches() {
    check(&[
        ("ThreadAxisSwap", "int r = threadIdx.z;", &["int r = threadIdx.y;"]),
        ("BlockAxisSwap", "int r = blockIdx.x;", &["int r = blockIdx.y;"]),
        ("TransposedAccess", "__shared__ float t[4][4]; s = t[0][1] + t[i][i];", &[]),
        ("LayoutTransposed", "int r = blockIdx.x * blockDim.x + threadIdx.x;", &[]),
        ("LayoutTransposed", "s = a * b + c;", &[]),
        ("StrideConfusion", "s = a * b + c;", &[]),
        ("StrideDropped", "k<<<n * m + 1, 32>>>(x, w, y, n, m);", &[]),
        ("IndexShift", "float t[4]; s = t[i];", &[]),
        (
            "IndexShift",
            "s = x[i]; s = x[j]; y[i] = s;",
            &["s = x[i + 1]; s = x[j]; y[i] = s;", "s = x[i]; s = x[j]; y[i + 1] = s;"],
        ),
        ("LaneWarpConfusion", "int r = tid % 32;", &["int r = tid / 32;"]),
        ("LaneWarpConfusion", "int r = (n + 31) >> 5;", &[]),
        ("VectorComponentSwap", "int r = threadIdx.x;", &[]),
        (
            "GridAxisSwap",
            "dim3 g(n, 4 * m); k<<<g, 64>>>(x, w, y, n, m);",
            &["dim3 g(4 * m, n); k<<<g, 64>>>(x, w, y, n, m);"],
        ),
        (
            "GridAxisSwap",
            "dim3 g = dim3(n, 8); k<<<g, 64>>>(x, w, y, n, m);",
            &["dim3 g = dim3(8, n); k<<<g, 64>>>(x, w, y, n, m);"],
        ),
        ("GridAxisSwap", "dim3 b(32, 8); k<<<n, b>>>(x, w, y, n, m);", &[]),
        ("LaunchArgumentSwap", "k<<<n, 64>>>(x, y, w, n, 4);", &[]),
    ]);
}

#[test]
fn semantic_rules_tell_values_from_indices() {
    check(&[
        ("TieBreak", "if (i > n) j = i;", &[]),
        ("TieBreak", "if (a > 0.0f) j = i;", &[]),
        ("ComparisonReversed", "if (i > n) j = i;", &[]),
        ("MinMaxSwap", "int r = max(i, j);", &["int r = min(i, j);"]),
        ("ClampDropped", "int r = max(i, 0);", &[]),
        (
            "ClampDropped",
            "s = fminf(1.0f, fmaxf(a, -1.0f));",
            &["s = fmaxf(a, -1.0f);", "s = fminf(1.0f, a);"],
        ),
        ("TernarySwapped", "s = flag ? a : flag ? b : c;", &["s = flag ? a : flag ? c : b;"]),
        ("FlagFlip", "bool t = true; if (i) s = a;", &["bool t = false; if (i) s = a;"]),
        ("FlagFlip", "s = flag ? a : b;", &["s = !flag ? a : b;"]),
        (
            "FlagFlip",
            "template <bool CAUSAL> __global__ void k(float* y) { if constexpr (CAUSAL) y[0] = 1.0f; }",
            &["template <bool CAUSAL> __global__ void k(float* y) { if constexpr (!CAUSAL) y[0] = 1.0f; }"],
        ),
        ("AccumulateToAssign", "for (int q = 0; q < n; q += 2) ;", &[]),
        ("AssignmentDropped", "s += a;", &[]),
        ("FusedOrder", "s = (a + b) * c;", &["s = (a * c + b);"]),
        ("FusedOrder", "int r = i * n + j;", &[]),
        ("StatementOrder", "s = a; c = b;", &[]),
        ("ReductionIdentity", "s = -1e30f; c = -1.0f;", &["s = 0.0f; c = -1.0f;"]),
        ("ReductionIdentity", "s = __int_as_float(0xff800000);", &["s = 0.0f;"]),
        ("AccumulatorStart", "float t = 0.0f; s = t;", &[]),
        ("AccumulatorStart", "float t = 1.f; t = t * a;", &["float t = 0.0f; t = t * a;"]),
        ("DegreesOfFreedom", "float mean = s / n;", &[]),
        ("DegreesOfFreedom", "float sq = a; s = sq / (float)n;", &["float sq = a; s = sq / ((float)n - 1);"]),
        ("NormaliserDropped", "int r = i / n;", &[]),
        ("EpsPlacement", "s = sqrtf(a + 1e-5f);", &["s = (sqrtf(a) + 1e-5f);"]),
        ("EpsPlacement", "s = sqrtf(a + b);", &[]),
        ("ThresholdShift", "if (a > 0.0f) s = a;", &["if (a > 0.01f) s = a;"]),
        ("ClampShift", "s = fmaxf(a, -1e30f);", &[]),
        ("SquareDropped", "int r = i * i;", &[]),
        ("OperandOrder", "int r = i - j; s = a / b;", &["int r = i - j; s = b / a;"]),
        ("LoopReversed", "for (int q = 0; q < n; ++q) s += x[q];", &[]),
        ("LaunchDropped", "k<<<n, 256>>>(x, w, y, n, m);", &[]),
    ]);
}

#[test]
fn boundary_rules_find_guards_loops_and_tails() {
    check(&[
        ("RelationalBoundary", "if (a < b) s = a;", &[]),
        ("RelationalBoundary", "for (int q = 0; q < n; ++q) s += a;", &[]),
        ("RelationalBoundary", "while (n > 1) n >>= 1;", &[]),
        ("LoopBoundInclusive", "for (int q = 16; q > 0; q >>= 1) s += a;", &[]),
        (
            "LoopBoundInclusive",
            "for (int q = n; q > 0; --q) s += a;",
            &["for (int q = n; q >= 0; --q) s += a;"],
        ),
        ("LoopBoundShort", "for (int q = 0; q < 8; ++q) s += a;", &["for (int q = 0; q < 7; ++q) s += a;"]),
        (
            "LoopStart",
            "for (int q = tid; q < n; q += 32) s += a;",
            &["for (int q = tid + 1; q < n; q += 32) s += a;"],
        ),
        ("LoopStart", "for (int q = n; q > 0; q -= 2) s += a;", &[]),
        (
            "LoopStep",
            "++i; for (int q = 0; q < n; q++) s += a;",
            &["++i; for (int q = 0; q < n; q += 2) s += a;"],
        ),
        ("GuardDeleted", "if (i >= n) return; y[i] = a;", &["if (false) return; y[i] = a;"]),
        ("GuardDeleted", "if (i >= n) { return; } y[i] = a;", &["if (false) { return; } y[i] = a;"]),
        ("GuardDeleted", "if (a < b) s = a;", &[]),
        ("GuardDeleted", "if (i < n) s = a; else s = b;", &[]),
        ("GuardShort", "if (i >= n) return;", &["if (i >= n - 1) return;"]),
        ("GuardShort", "if (i < 4) s = a;", &[]),
        ("AndToOr", "while (i < n && j < m) ++i;", &[]),
        (
            "CeilToFloorGrid",
            "k<<<(n + 256 - 1) / 256, 256>>>(x, w, y, n, m);",
            &["k<<<n / 256, 256>>>(x, w, y, n, m);"],
        ),
        (
            "CeilToFloorGrid",
            "k<<<(n - 1) / 256 + 1, 256>>>(x, w, y, n, m);",
            &["k<<<n / 256, 256>>>(x, w, y, n, m);"],
        ),
        (
            "CeilToFloorGrid",
            "k<<<ceil_div(n, 256), 256>>>(x, w, y, n, m);",
            &["k<<<n / 256, 256>>>(x, w, y, n, m);"],
        ),
        ("CeilToFloorGrid", "k<<<(n + 255) / 128, 256>>>(x, w, y, n, m);", &[]),
        (
            "CeilToFloorGrid",
            "int g = 2 * ((n + m - 1) / m); k<<<g, 32>>>(x, w, y, n, m);",
            &["int g = 2 * (n / m); k<<<g, 32>>>(x, w, y, n, m);"],
        ),
        ("CeilToFloorTiles", "int r = (n + 31) >> 5;", &["int r = n >> 5;"]),
        ("FloorToCeil", "int r = tid / 4;", &["int r = (tid + 3) / 4;"]),
        ("FloorToCeil", "int r = threadIdx.x / 4; s = a / 2;", &[]),
        ("TailDropped", "if (n % 4 != 0) y[i] = a;", &[";"]),
        ("TailDropped", "for (int q = 0; q < n; ++q) s += a;", &[]),
        ("IndexClampDropped", "s = fminf(a, b);", &[]),
        ("VectorGuardShort", "if (a + 1 < b) s = a;", &[]),
        ("PaddingDropped", "int r = i * stride - pad + j;", &["int r = (i * stride) + j;"]),
        (
            "HalvingStop",
            "for (int q = 16; q >= 1; q /= 2) s += a;",
            &["for (int q = 16; q >= 2; q /= 2) s += a;"],
        ),
        ("WarpSizeHalved", "k<<<n / 32, 32>>>(x, w, y, n, m);", &[]),
        (
            "SharedArrayShort",
            "__shared__ float t[4][5]; float u[3];",
            &["__shared__ float t[4 - 1][5]; float u[3];"],
        ),
        (
            "BlockSizeHalved",
            "dim3 b(16, 16); k<<<n, b>>>(x, w, y, n, m);",
            &["dim3 b(16 / 2, 16); k<<<n, b>>>(x, w, y, n, m);"],
        ),
        ("BlockSizeHalved", "k<<<n, m>>>(x, w, y, n, m);", &["k<<<n, m / 2>>>(x, w, y, n, m);"]),
        ("DynamicSharedHalved", "k<<<n, 256>>>(x, w, y, n, m);", &[]),
        (
            "GridAxisDropped",
            "dim3 g(n, 1, m); k<<<g, 64>>>(x, w, y, n, m);",
            &["dim3 g(n, 1, 1); k<<<g, 64>>>(x, w, y, n, m);"],
        ),
    ]);
}

#[test]
fn synchronisation_rules_leave_other_calls_alone() {
    check(&[
        ("BarrierDropped", "__syncwarp(); __threadfence();", &[]),
        ("WarpBarrierDropped", "__syncthreads();", &[]),
        ("BarrierEarly", "int r = i; __syncthreads();", &[]),
        ("ShuffleOffset", "s = __shfl_sync(0xffffffff, s, 0);", &["s = __shfl_sync(0xffffffff, s, 1);"]),
        ("ShuffleWidth", "s = __shfl_xor_sync(0xffffffff, s, 4, 8);", &[]),
        ("AtomicToPlain", "atomicAdd(y + i, a);", &["*(y + i) += (a);"]),
        ("AtomicToPlain", "s = atomicAdd(y, a);", &[]),
        ("AtomicToPlain", "atomicMax(&idx[i], j);", &["idx[i] = max(idx[i], j);"]),
        ("FenceDropped", "__threadfence_block();", &[";"]),
        ("FenceScope", "__threadfence_block();", &[]),
        ("LeaderGuardDropped", "if (a == 0.0f) s = a;", &[]),
        ("LeaderGuardDropped", "if (threadIdx.x == 0) y[0] = s;", &["if (true) y[0] = s;"]),
        ("BufferParity", "i = 1 - j;", &["i = j;"]),
    ]);
}

#[test]
fn precision_rules_want_floats_on_the_device() {
    check(&[
        ("HalfAccumulator", "s += a;", &[]),
        ("HalfAccumulator", "for (int q = 0; q < n; ++q) i += q;", &[]),
        ("HalfStore", "y[i] = 0.0f;", &[]),
        ("HalfStore", "idx[i] = j;", &[]),
        ("HalfLoad", "const float* p = &x[i]; y[i] = a;", &[]),
        ("Tf32Operand", "s += i * j;", &[]),
        (
            "Tf32Operand",
            "s = fmaf(a, b, s);",
            &["s = fmaf(__uint_as_float(__float_as_uint(a) & 0xffffe000u), b, s);"],
        ),
        ("StabiliserDropped", "s = expf(a);", &[]),
        ("FastDivision", "int r = i / n; s = a / 2.0f;", &[]),
        ("RootByReciprocal", "s = sqrtf(i++);", &[]),
        ("TruncatedConstant", "s = 0.5f * a; c = 1.5957691f;", &["s = 0.5f * a; c = 1.5f;"]),
        ("TruncatedConstant", "s = -0.044715f;", &["s = -0.044f;"]),
        ("PerturbedConstant", "s = 3.99f; int r = 12345;", &["s = 3.98f; int r = 12345;"]),
        ("EpsilonDropped", "s = a + 1e-6f;", &["s = a;"]),
        ("EpsilonEnlarged", "s = a + b;", &[]),
        ("IntegerDivisionFirst", "s = (float)i / (float)n;", &["s = (float)(i / n);"]),
        ("IntegerDivisionFirst", "s = (float)i / a;", &[]),
        ("OnePassVariance", "float d = a - b; s += d * d;", &["float d = a - b; s += (a * a - b * b);"]),
        ("OnePassVariance", "float d = a; s += d * d;", &[]),
        ("FiniteInfinity", "s = -1e30f;", &["s = -1.0e4f;"]),
        (
            "DoubleToFloat",
            "void launch(double* x) { }  __global__ void k(double* x) { double t = x[0]; }",
            &["void launch(double* x) { }  __global__ void k(double* x) { float t = x[0]; }"],
        ),
    ]);
}

#[test]
fn operators_of_mutgpu_know_launches_and_guards() {
    check(&[
        ("IncrementDirection", "for (int q = 0; q < n; ++q) j--;", &["for (int q = 0; q < n; ++q) j++;"]),
        ("HardwareIndexShift", "int r = blockDim.x * gridDim.x;", &[]),
        ("GridBlockSwap", "k<<<256, 256>>>(x, w, y, n, m);", &[]),
        (
            "GridBlockSwap",
            "dim3 g(n, m), b(8, 8); k<<<g, b, 64>>>(x, w, y, n, m);",
            &["dim3 g(n, m), b(8, 8); k<<<b, g, 64>>>(x, w, y, n, m);"],
        ),
        (
            "GridBlockExtra",
            "dim3 g(n, m), b(8, 8); k<<<g, b>>>(x, w, y, n, m);",
            &["dim3 g(n + 1, m), b(8, 8); k<<<g, b>>>(x, w, y, n, m);"],
        ),
        (
            "GridBlockExtra",
            "k<<<dim3((n + 7) / 8, m), 64>>>(x, w, y, n, m);",
            &["k<<<dim3(((n + 7) / 8) + 1, m), 64>>>(x, w, y, n, m);"],
        ),
        ("GridBlockMissing", "k<<<1, 256>>>(x, w, y, n, m);", &[]),
        ("GuardInverted", "if (i >= n || j >= m) return;", &["if (!(i >= n || j >= m)) return;"]),
        ("GuardInverted", "if (a > b) s = a; if (i == n) s = b;", &[]),
        ("SharedToLocal", "extern __shared__ float t[]; t[tid] = a;", &[]),
        ("SharedToLocal", "static __shared__ int t; t = i;", &["static int t; t = i;"]),
    ]);
}

#[test]
fn faults_of_public_reports_are_found_in_their_usual_forms() {
    check(&[
        ("ZeroScaleRead", "s = a == 0.0f ? b : b + a * y[i];", &["s = (b + a * y[i]);"]),
        ("ZeroScaleRead", "s = 0.0f != a ? b : c; s = i == 0 ? a : b;", &[]),
        ("ZeroScaleRead", "float t[4]; t[0] = a; idx[i] = j;", &[]),
        ("StoreAccumulates", "y[i] = 0.0f; s = a;", &[]),
        ("UnstableSigmoid", "s = 1.0f / (expf(-a) + 1.0f);", &["s = (expf(a) / (1.0f + expf(a)));"]),
        (
            "UnstableSigmoid",
            "s = 1.0f / (1.0f + expf(a)); s = b / (1.0f + expf(-a)); s = 1.0f / (1.0f + 1.0f);",
            &[],
        ),
        ("OverflowBranchDropped", "s = a < 20.0f ? log1pf(__expf(a)) : a;", &["s = (log1pf(__expf(a)));"]),
        (
            "OverflowBranchDropped",
            "s = i > 2 ? a : expf(a); s = a > 0.0f ? a : b; s = a > b ? a : expf(a);",
            &[],
        ),
    ]);
}

#[test]
fn width_rules_leave_what_is_narrow_already_alone() {
    let wide = "const size_t q = i; ";
    let with = |text: &str| format!("{wide}{text}");
    let cases: &[(&str, &str, &[&str])] = &[
        // Where another operand is wide, the cast decides nothing.
        ("WideCastDropped", "long long r = (long long)i * q;", &[]),
        ("WideCastDropped", "long long r = (long long)i; float v = static_cast<float>(i) * n;", &[]),
        (
            "WideCastDropped",
            "const float* p = x + (long long)i * n * m;",
            &["const float* p = x + i * n * m;"],
        ),
        (
            "CastNarrowed",
            "size_t r = size_t(i) * n + (size_t)(i + j) * m;",
            &["size_t r = size_t(i) * n + static_cast<unsigned>(i + j) * m;"],
        ),
        (
            "CastNarrowed",
            "int64_t r = static_cast<int64_t>(blockIdx.x) * n;",
            &["int64_t r = static_cast<int>(blockIdx.x) * n;"],
        ),
        (
            "LateWidening",
            "long long r = (long long)i * n; r = (long long)i * n * q;",
            &["long long r = (long long)i * n; r = static_cast<long long>(i * n) * q;"],
        ),
        (
            "IndexDeclaredInt",
            "size_t r = 0; long long* p; size_t u = n; unsigned long long key = (q << 32) | i;",
            &[],
        ),
        ("IndexDeclaredInt", "for (size_t r = q + 1; r < n; ++r) s += a;", &[]),
        (
            "IndexDeclaredUnsigned",
            "const int64_t r = q * n, t = q + 1;",
            &["const unsigned r = q * n, t = q + 1;"],
        ),
        ("LoopCounterNarrowed", "for (int r = 0; r < q; ++r) s += a;", &[]),
        ("GuardNarrowed", "for (size_t r = q; r < n; ++r) s += a; if (i < n) s = b;", &[]),
        ("GuardNarrowed", "if (i < n && q >= n) s = b;", &["if (i < n && static_cast<int>(q) >= n) s = b;"]),
        ("IndexWrapped", "s = x[i * n];", &[]),
        ("ByteOffsetWrapped", "float t[4]; s = t[i] + x[0];", &[]),
        ("OffsetNarrowed", "const float* p = x + i * n; size_t r = q + i;", &[]),
        (
            "StorageOffsetDropped",
            "const float* p = x + q * n;",
            &["const float* p = x + ((q * n) == static_cast<int>(q * n) ? q * n : 0);"],
        ),
        ("StridesIgnored", "s = x[i + j] + x[i * n + 1] + x[i * n + i];", &[]),
        (
            "StridesIgnored",
            "s = x[(size_t)i * n + j];",
            &[
                "s = x[static_cast<long long>(i) * n + j < 2147483648LL ? (size_t)i * n + j : static_cast<long long>(j) * n + i];",
            ],
        ),
        ("ReductionIndexShort", "for (int r = 0; r < 8; ++r) s += x[r];", &[]),
        ("ReductionIndexShort", "float t[4]; for (int r = 0; r < n; ++r) s += t[r] + r;", &[]),
    ];
    for (id, text, want) in cases {
        let want: Vec<String> = want.iter().map(|text| with(text)).collect();
        assert_eq!(mutants_of(rule_named(id).unwrap(), &with(text)), want, "{id}: {text}");
    }
    check(&[
        ("CountParameterInt", "__device__ int f(const long long* p, int q) { return q; }", &[]),
        ("CountParameterInt", "void launch(float* y, long long n) { f<<<1, 1>>>(y, n); }", &[]),
        ("CountArgumentInt", "k<<<n, 256>>>(x, w, y, n, m);", &[]),
        (
            "GridExtentTruncated",
            "dim3 g(n, 4); k<<<g, dim3(n, m)>>>(x, w, y, n, m);",
            &["dim3 g(static_cast<unsigned short>(n), 4); k<<<g, dim3(n, m)>>>(x, w, y, n, m);"],
        ),
    ]);
}

#[test]
fn constants_at_file_scope_are_mutated() {
    let source = "#define WARP_SIZE 32\n#define TILE 32\nconstexpr float BETA = 0.044715f;\n\
                  __constant__ float COEF[2] = {-1.2345f, 2.0f};\nfloat other = 0.044715f;\n\
                  __global__ void k(float* y) { }\n";
    let names: Vec<String> = mutants_in(source, "c.cu").unwrap().into_iter().map(|m| m.name).collect();
    assert_eq!(
        names,
        [
            "c.cu:1:19: replace 32 with 16",
            "c.cu:3:24: replace 0.044715f with 0.044f",
            "c.cu:3:24: replace 0.044715f with 0.044815f",
            "c.cu:4:31: replace -1.2345f with -1.2f",
            "c.cu:4:31: replace -1.2345f with -1.2445f",
        ]
    );
}

#[test]
fn what_is_not_code_to_mutate_stays_as_it_is() {
    let source = r#"#include <cuda_fp16.h>
// a + b < c
/* i * j */
static_assert(4 + 4 < 16, "a + b");
#define SQUARE(v) ((v) * (v))
#if 1 + 1 < 3
template <int N = 4 + 4>
__global__ void __launch_bounds__(128 * 2) k(float* y, int n = 3 * 4) {
    static_assert(N * 2 > 4, "N");
    char text[8 + 8];
    asm volatile("add.u32 %0, 1, 2;" : "=r"(n) : "r"(n));
    printf("%d < %d + 1\n", y);
#pragma unroll 4
    helper<2 + 2>(y);
}
#endif
float host_helper(float a) { return a * 2.0f + 1.0f; }
"#;
    assert_eq!(mutants_in(source, "t.cu").unwrap(), []);
}

#[test]
fn a_function_without_qualifiers_is_mutated_where_it_launches_or_is_constexpr() {
    let source = "constexpr int f(int a) { return a * 2; }\n__global__ void k() { }\n\
                  void run(int n) { k<<<n * 4, 32>>>(); }\nint main() { int a = 1; return a * 2; }\n";
    let mutants = mutants_in(source, "t.cu").unwrap();
    let functions: Vec<(Option<&str>, bool)> =
        mutants.iter().map(|m| (m.function.as_deref(), m.host)).collect();
    assert!(functions.contains(&(Some("f"), false)));
    assert!(functions.contains(&(Some("run"), true)));
    assert!(!functions.iter().any(|(name, _)| *name == Some("main")));
}

#[test]
fn regions_that_do_not_parse_are_left_out_and_the_rest_is_mutated() {
    let source = "__global__ void good(float* y, float a, float b) { y[0] = a + b; }\n)))) ???\n\
                  __global__ void bad(float* y, float a) { y[0] = a + ; if ( }\n";
    let mutants = mutants_in(source, "t.cu").unwrap();
    assert!(mutants.iter().any(|m| m.name == "t.cu:1:61: replace + with - in good"), "{mutants:?}");
    assert!(mutants.iter().all(|m| m.line != 2));
}

#[test]
fn a_source_without_functions_is_an_error_with_its_line() {
    let error = mutants_in("int a = 3;\n", "empty.cu").unwrap_err();
    assert_eq!(error, MutateError::NoFunction { file: "empty.cu".into(), line: 1 });
    let error = mutants_in("int a;\nint b;\n] ] ]\n", "broken.cu").unwrap_err();
    assert!(error.to_string().starts_with("`broken.cu`:3: no function definition found"), "{error}");
}

#[test]
fn a_half_precision_header_in_the_file_is_used() {
    let source = "#include <cuda_fp16.h>\n__global__ void k(float* y, float a) {\n    y[0] = a;\n}\n";
    let mutants = mutants_in(source, "t.cu").unwrap();
    let store = mutants.iter().find(|m| m.rule == "HalfStore").unwrap();
    assert!(store.apply(source).contains("    y[0] = __half2float(__float2half(a));\n"));
    assert_eq!(store.edits.len(), 1);
}

#[test]
fn a_helper_is_put_before_the_whole_function_on_its_line() {
    let source = "\ntemplate <typename T>\n__global__ void k(float* y, float a) {\n    y[0] = a;\n}\n";
    let mutants = mutants_in(source, "t.cu").unwrap();
    let store = mutants.iter().find(|m| m.rule == "HalfStore").unwrap();
    let mutated = store.apply(source);
    let second = mutated.lines().nth(1).unwrap();
    assert!(second.starts_with("static __device__") && second.ends_with("template <typename T>"), "{second}");
    assert_eq!((store.line, store.column), (4, 12));
}

#[test]
fn one_change_of_two_rules_is_one_mutant_of_the_first() {
    // Both `StrideDropped` and `ConvolutionStrideIgnored` make `i + j` of this.
    let source =
        "__global__ void k(int i, int j, int stride, float* y) {\n    y[i * stride + j] = 1.0f;\n}\n";
    let wanted = "    y[i + j] = 1.0f;\n";
    for id in ["StrideDropped", "ConvolutionStrideIgnored"] {
        let alone = mutants_by(source, "t.cu", &[rule_named(id).unwrap()]).unwrap();
        assert!(alone.iter().any(|m| m.apply(source).contains(wanted)), "{id}");
    }
    let both: Vec<&str> = mutants_in(source, "t.cu")
        .unwrap()
        .into_iter()
        .filter(|m| m.apply(source).contains(wanted))
        .map(|m| m.rule)
        .collect();
    assert_eq!(both, ["StrideDropped"]);
}

#[test]
fn statements_over_several_lines_keep_the_line_count() {
    let source = "__global__ void k(float* y, const float* x, int n) {\n    y[0] =\n        x[0] +\n        x[1];\n    y[1] = x[2];\n}\n";
    for mutant in mutants_in(source, "t.cu").unwrap() {
        assert_eq!(mutant.apply(source).lines().count(), source.lines().count(), "{}", mutant.name);
    }
}

#[test]
fn records_have_the_keys_of_the_listing() {
    let source = "__global__ void k(float* y, float a, float b) {\n    y[0] = a + b;\n}\n";
    let mutants = mutants_in(source, "dir/k.cu").unwrap();
    let record = mutants.iter().find(|m| m.rule == "AddToSub").unwrap().record(source);
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!(json["rule"], "AddToSub");
    assert_eq!(json["family"], "arithmetic");
    assert_eq!(json["line"], 2);
    assert_eq!(json["column"], 14);
    assert_eq!(json["name"], "dir/k.cu:2:14: replace + with - in k");
    assert_eq!(json["id"].as_str().map(str::len), Some(16));
    let want = "--- a/dir/k.cu\n+++ b/dir/k.cu\n@@ -1,3 +1,3 @@\n __global__ void k(float* y, float a, float b) {\n-    y[0] = a + b;\n+    y[0] = a - b;\n }\n";
    assert_eq!(json["diff"], want);
}
