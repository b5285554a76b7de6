//! The device part of a CUDA file: host-only text becomes blanks, so lines and columns stay what they were.
//!
//! A runtime compiler accepts no host function at all, so whatever has no `__global__` or `__device__` (written
//! out or behind a macro) and is a function goes, with its prototype; likewise declarations and records that
//! mention the CUDA runtime, `std::`, Torch or pybind11, and includes of host-only headers. A `constexpr`
//! function that kept code mentions stays (it needs `--device-as-default-execution-space`).
//!
//! What it misses: a host-only record that names none of those; host functions whose braces are split over the
//! two sides of an `#if`.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{DeviceMacros, Item, ItemKind, split};
use crate::lex::{Kind, Tok, lex};
use crate::preprocess::directive;

/// Folders whose headers hold host code.
const HOST_FOLDERS: [&str; 16] = [
    "torch/",
    "ATen/",
    "c10/",
    "pybind11/",
    "THC/",
    "sys/",
    "experimental/",
    "boost/",
    "GL/",
    "EGL/",
    "GLES2/",
    "GLES3/",
    "X11/",
    "vulkan/",
    "arpa/",
    "netinet/",
];

/// Headers that only a host compiler has or needs; with the C++ ones of [`STANDARD`].
const HOST_HEADERS: [&str; 50] = [
    "windows.h",
    "winsock2.h",
    "process.h",
    "direct.h",
    "io.h",
    "conio.h",
    "pthread.h",
    "dirent.h",
    "fcntl.h",
    "dlfcn.h",
    "signal.h",
    "getopt.h",
    "strings.h",
    "malloc.h",
    "memory.h",
    "nvrtc.h",
    "curand_mtgp32_host.h",
    "helper_image.h",
    "helper_math_host.h",
    "helper_gl.h",
    "helper_multiprocess.h",
    "nvml.h",
    "cusolverDn.h",
    "cublas.h",
    "cudaProfiler.h",
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "cuda_device_runtime_api.h",
    "device_launch_parameters.h",
    "device_functions.h",
    "driver_types.h",
    "host_defines.h",
    "builtin_types.h",
    "cuda_profiler_api.h",
    "cublas_v2.h",
    "cublasLt.h",
    "cudnn.h",
    "cufft.h",
    "cusparse.h",
    "curand.h",
    "nvToolsExt.h",
    "helper_cuda.h",
    "helper_functions.h",
    "helper_string.h",
    "helper_timer.h",
    "Python.h",
    "unistd.h",
    "omp.h",
    "mpi.h",
];

/// Headers of the C and C++ standard libraries; a runtime compiler ships none of them.
const STANDARD: [&str; 105] = [
    "algorithm",
    "array",
    "assert.h",
    "atomic",
    "bitset",
    "cassert",
    "cctype",
    "cerrno",
    "cfloat",
    "chrono",
    "climits",
    "cmath",
    "complex",
    "condition_variable",
    "csignal",
    "cstdarg",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "ctime",
    "ctype.h",
    "deque",
    "errno.h",
    "exception",
    "filesystem",
    "float.h",
    "forward_list",
    "fstream",
    "functional",
    "future",
    "initializer_list",
    "inttypes.h",
    "iomanip",
    "ios",
    "iosfwd",
    "iostream",
    "istream",
    "iterator",
    "limits",
    "limits.h",
    "list",
    "locale",
    "map",
    "math.h",
    "memory",
    "mutex",
    "new",
    "numeric",
    "optional",
    "ostream",
    "queue",
    "random",
    "ratio",
    "regex",
    "set",
    "sstream",
    "stack",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "stdexcept",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string",
    "string.h",
    "string_view",
    "thread",
    "time.h",
    "tuple",
    "type_traits",
    "unordered_map",
    "utility",
    "vector",
    "any",
    "barrier",
    "bit",
    "charconv",
    "cinttypes",
    "compare",
    "complex.h",
    "concepts",
    "coroutine",
    "cstdbool",
    "cwchar",
    "execution",
    "format",
    "latch",
    "memory_resource",
    "numbers",
    "ranges",
    "scoped_allocator",
    "semaphore",
    "shared_mutex",
    "source_location",
    "span",
    "stop_token",
    "strstream",
    "system_error",
    "typeindex",
    "typeinfo",
    "variant",
    "valarray",
];

/// Namespaces of host code; a name counts when `::` follows.
const HOST_NAMESPACES: [&str; 7] = ["std", "torch", "at", "c10", "py", "pybind11", "thrust"];

/// The text of `source` with everything host-only blanked by spaces; newlines, and with them every line and
/// (byte) column, stay. Works on any file and never fails: what it cannot tell apart stays, for the compiler
/// to judge.
pub fn device_source(source: &str) -> String {
    let toks = lex(source, 0);
    let items = split(&toks, &DeviceMacros::gather(&toks));
    let mut cut: Vec<std::ops::Range<usize>> = Vec::new();
    let mut maybe: Vec<&Item> = Vec::new();
    let mut kept: Vec<&Item> = Vec::new();
    for item in &items {
        match verdict(&toks, item) {
            Keep::No => cut.push(bytes(&toks, item)),
            Keep::Yes => kept.push(item),
            Keep::IfMentioned => maybe.push(item),
        }
    }
    // A constexpr function may be mentioned by another one, so this repeats until nothing changes.
    let mut mentioned: BTreeSet<&str> = BTreeSet::new();
    let mut fresh = kept;
    while !fresh.is_empty() {
        for item in &fresh {
            mentioned
                .extend(toks[item.range.clone()].iter().filter(|t| t.kind == Kind::Ident).map(|t| t.text));
        }
        let (now, later): (Vec<&Item>, Vec<&Item>) =
            maybe.into_iter().partition(|i| i.name.is_some_and(|n| mentioned.contains(toks[n].text)));
        fresh = now;
        maybe = later;
    }
    cut.extend(maybe.into_iter().map(|item| bytes(&toks, item)));
    for tok in toks.iter().filter(|t| t.kind == Kind::Directive) {
        let d = directive(tok.text);
        if d.name == "include" && is_host_include(d.rest.trim()) {
            cut.push(tok.at as usize..tok.end());
        }
    }
    blank(source, &cut)
}

/// A device text taken apart: what each kernel would be compiled from on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTexts {
    /// What is left when every kernel is blank.
    pub rest: String,
    /// By name, without namespaces and template arguments: the text in which every other kernel is blank.
    pub kernels: BTreeMap<String, String>,
}

impl KernelTexts {
    /// The name in [`KernelTexts::kernels`] for a name expression, as `n::k<4>`: `k`.
    pub fn base(expression: &str) -> &str {
        let base = expression.split('<').next().unwrap_or(expression);
        base.rsplit("::").next().unwrap_or(base).trim()
    }
}

/// Takes a device text apart. Every line, and every column of what is left, stays where it was; blanks at the ends of
/// lines go, so that what does not change is equal whatever stood in a blank kernel.
///
/// `None` where a kernel cannot be left out by its text alone: it is declared, instantiated or overloaded elsewhere, a
/// directive other than `#pragma unroll` stands inside it, another kernel's text names it, the text counts itself
/// (`__COUNTER__`), or has a literal of several lines.
pub fn kernel_texts(device: &str) -> Option<KernelTexts> {
    let toks = lex(device, 0);
    let counts = device.contains("__COUNTER__");
    if counts || toks.iter().any(|t| t.kind == Kind::Str && t.text.contains('\n')) {
        return None;
    }
    let items = split(&toks, &DeviceMacros::gather(&toks));
    let mut found: Vec<(&str, &Item)> = Vec::new();
    for item in items.iter().filter(|i| i.kernel) {
        let name = toks[item.name?].text;
        let plain = item.kind == ItemKind::Function
            && item.body.is_some()
            && found.iter().all(|(n, _)| *n != name)
            && toks[item.range.clone()].iter().filter(|t| t.kind == Kind::Directive).all(|t| {
                let d = directive(t.text);
                d.name == "pragma" && d.rest.trim_start().starts_with("unroll")
            });
        if !plain {
            return None;
        }
        found.push((name, item));
    }
    let inside = |at: usize| found.iter().position(|(_, item)| item.range.contains(&at));
    for (at, tok) in toks.iter().enumerate() {
        let named = found.iter().position(|(n, _)| tok.kind == Kind::Ident && *n == tok.text);
        if named.is_some() && named != inside(at) {
            return None;
        }
        // Hidden in a macro, or where no kernel was found.
        if inside(at).is_none() && tok.is("__global__") {
            return None;
        }
    }
    let without = |kept: Option<&str>| {
        let cut: Vec<_> =
            found.iter().filter(|(n, _)| kept != Some(*n)).map(|(_, item)| bytes(&toks, item)).collect();
        let mut out = String::with_capacity(device.len());
        for line in blank(device, &cut).lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    };
    let kernels = found.iter().map(|(n, _)| ((*n).to_owned(), without(Some(n)))).collect();
    Some(KernelTexts { rest: without(None), kernels })
}

/// The parameters of a kernel as they are written, without comments: `const float* x, int n`. `kernel` may be a template
/// instance or a qualified name; none where the text has no such kernel.
pub fn kernel_parameters(source: &str, kernel: &str) -> Option<String> {
    let base = kernel.split('<').next().unwrap_or(kernel).trim();
    let base = base.rsplit("::").next().unwrap_or(base);
    let toks = lex(source, 0);
    let items = split(&toks, &DeviceMacros::gather(&toks));
    let item = items.iter().find(|i| i.kernel && i.name.is_some_and(|n| toks[n].text == base))?;
    let mut out = String::new();
    for t in toks.get(item.params.clone()?)? {
        let tight = matches!(t.text, "," | "*" | "&" | ")" | "::" | "]" | ">")
            || out.ends_with(['(', ':', '['])
            || (t.text == "[" && !out.is_empty());
        if !tight && !out.is_empty() {
            out.push(' ');
        }
        out.push_str(t.text);
    }
    Some(out)
}

/// The kernels of a file in its order, templates as `name<…>`.
pub fn kernel_names(source: &str) -> Vec<String> {
    let toks = lex(source, 0);
    let items = split(&toks, &DeviceMacros::gather(&toks));
    let mut out: Vec<String> = Vec::new();
    for item in items.iter().filter(|i| i.kernel && i.kind == ItemKind::Function) {
        let Some(name) = item.name.map(|n| toks[n].text) else { continue };
        let full = format!("{}{name}{}", item.scope, if item.template.is_some() { "<…>" } else { "" });
        if !out.contains(&full) {
            out.push(full);
        }
    }
    out
}

enum Keep {
    Yes,
    No,
    IfMentioned,
}

fn verdict(toks: &[Tok<'_>], item: &Item) -> Keep {
    let all = &toks[item.range.clone()];
    if item.device {
        return Keep::Yes;
    }
    match item.kind {
        // `typedef float (*op)(float);` has the parentheses of a function.
        ItemKind::Function if toks[item.range.start].is("typedef") => {
            if mentions_host(all) {
                Keep::No
            } else {
                Keep::Yes
            }
        }
        ItemKind::Function => {
            let is_constexpr =
                toks[item.header.clone()].iter().any(|t| t.is("constexpr") || t.is("consteval"));
            // `const int n(4);` looks like a prototype but is a variable.
            let variable = item.body.is_none() && !is_constexpr && is_initialised(toks, item);
            if (variable || is_constexpr) && !mentions_host(all) {
                return if is_constexpr { Keep::IfMentioned } else { Keep::Yes };
            }
            Keep::No
        }
        ItemKind::Record => {
            let device = all.iter().any(|t| t.is("__device__"));
            if !device && mentions_host(all) { Keep::No } else { Keep::Yes }
        }
        ItemKind::Declaration => {
            if mentions_host(all) || uses_host_namespace(all) || is_host_variable(toks, item) {
                Keep::No
            } else {
                Keep::Yes
            }
        }
    }
}

/// `const int n(4)`, and not the prototype `const float* f(const float* x, int n)`: a constant whose parentheses hold
/// values.
fn is_initialised(toks: &[Tok<'_>], item: &Item) -> bool {
    let (Some(name), Some(params)) = (item.name, item.params.clone()) else { return false };
    let constant = toks[item.range.start..name].iter().any(|t| t.is("const") || t.is("constinit"));
    let inside = &toks[params];
    let is_type = |t: &Tok<'_>| {
        const WORDS: [&str; 14] = [
            "void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed", "const",
            "struct", "auto", "...",
        ];
        WORDS.contains(&t.text)
    };
    // `T x`, `T* x`, `T&`: two names in a row, or a name before an asterisk that nothing follows.
    let declares = inside.windows(2).any(|w| w[0].kind == Kind::Ident && w[1].kind == Kind::Ident)
        || inside.last().is_some_and(|t| t.is("*") || t.is("&"));
    constant && !inside.is_empty() && !declares && !inside.iter().any(is_type)
}

/// A variable that only host code can see: no memory space, and not a constant that device code may use.
fn is_host_variable(toks: &[Tok<'_>], item: &Item) -> bool {
    const OTHERS: [&str; 20] = [
        "typedef",
        "using",
        "namespace",
        "template",
        "struct",
        "class",
        "union",
        "enum",
        "static_assert",
        "concept",
        "requires",
        "friend",
        "asm",
        "__asm__",
        "export",
        "import",
        "module",
        "constexpr",
        "_Pragma",
        "__pragma",
    ];
    if item.template.is_some() || item.device {
        return false;
    }
    let all = &toks[item.range.clone()];
    let first =
        all.iter().find(|t| !matches!(t.text, "static" | "extern" | "inline" | "thread_local" | "volatile"));
    if first.is_none_or(|t| t.kind != Kind::Ident || OTHERS.contains(&t.text)) {
        return false;
    }
    // What does not end is for the compiler to judge.
    if !all.last().is_some_and(|t| t.is(";")) {
        return false;
    }
    // A type and a name at least: a lone word is a macro.
    let declarator: Vec<&Tok<'_>> =
        all.iter().take_while(|t| !t.is("=") && !t.is("{") && !t.is(";")).collect();
    if declarator.iter().filter(|t| t.kind == Kind::Ident).count() < 2 {
        return false;
    }
    // `const char* s` is a variable, `char* const s` a constant.
    let star = declarator.iter().rposition(|t| t.is("*"));
    !declarator[star.map_or(0, |s| s + 1)..]
        .iter()
        .any(|t| matches!(t.text, "const" | "constexpr" | "constinit"))
}

/// True when the tokens speak of the CUDA runtime, of a launch, or of a host library.
fn mentions_host(toks: &[Tok<'_>]) -> bool {
    toks.iter().enumerate().any(|(i, t)| {
        if t.is("<<<") {
            return true;
        }
        if t.kind != Kind::Ident {
            return false;
        }
        let next = toks.get(i + 1);
        let scoped = HOST_NAMESPACES.contains(&t.text) && next.is_some_and(|n| n.is("::"));
        // cudaStream_t, cudaMalloc; texture and surface objects are device types as well.
        let runtime = t
            .text
            .strip_prefix("cuda")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
            && !matches!(t.text, "cudaTextureObject_t" | "cudaSurfaceObject_t");
        let library = ["cublas", "cudnn", "curandGenerator", "PYBIND11_", "TORCH_", "AT_DISPATCH"]
            .iter()
            .any(|p| t.text.starts_with(p));
        scoped || runtime || library || (t.text == "scratch" && next.is_some_and(|n| n.is("<")))
    })
}

/// `using namespace std;`, `namespace F = torch::nn;`.
fn uses_host_namespace(toks: &[Tok<'_>]) -> bool {
    toks.windows(2).any(|w| w[0].is("namespace") && HOST_NAMESPACES.contains(&w[1].text))
}

fn is_host_include(rest: &str) -> bool {
    // What follows the name (a comment) does not matter; a quoted name is a file of the user's.
    let Some(name) = rest.strip_prefix('<').and_then(|r| r.split('>').next()) else {
        let quoted = rest.strip_prefix('"').and_then(|r| r.split('"').next()).unwrap_or("");
        return HOST_FOLDERS.iter().any(|f| quoted.starts_with(f)) || HOST_HEADERS.contains(&quoted);
    };
    let name = name.trim();
    HOST_FOLDERS.iter().any(|f| name.starts_with(f))
        || HOST_HEADERS.contains(&name)
        || STANDARD.contains(&name)
}

/// The bytes of an item.
fn bytes(toks: &[Tok<'_>], item: &Item) -> std::ops::Range<usize> {
    let start = toks.get(item.range.start).map_or(0, |t| t.at as usize);
    let end = item.range.end.checked_sub(1).and_then(|j| toks.get(j)).map_or(start, Tok::end);
    start..end.max(start)
}

fn blank(source: &str, cut: &[std::ops::Range<usize>]) -> String {
    let mut out = source.as_bytes().to_vec();
    for range in cut {
        if let Some(part) = out.get_mut(range.clone()) {
            for b in part.iter_mut().filter(|b| !matches!(**b, b'\n' | b'\r' | b'\t')) {
                *b = b' ';
            }
        }
    }
    // Every range begins and ends at a token, so whole characters were replaced by ASCII.
    String::from_utf8(out).unwrap_or_else(|_| source.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left, with runs of blanks cut to one.
    fn left(s: &str) -> String {
        let d = device_source(s);
        assert_eq!(d.len(), s.len());
        assert_eq!(d.lines().count(), s.lines().count());
        d.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn host_only_text_goes_and_device_text_stays_where_it_was() {
        let s = "#include <torch/extension.h>\n#include <cuda_fp16.h>\n/* é */ int main() { return 0; }\n__global__ void k(int* p) { *p = 1; }\n";
        let d = device_source(s);
        assert_eq!(d.lines().nth(3), Some("__global__ void k(int* p) { *p = 1; }"));
        assert_eq!(d.lines().nth(1), Some("#include <cuda_fp16.h>"));
        assert!(!d.contains("main") && !d.contains("torch"));
        assert_eq!(d.find("__global__"), s.find("__global__"));
    }

    #[test]
    fn nasty_inputs_are_told_apart() {
        let cases: [(&str, &str); 27] = [
            // Templates, namespaces and macros that hide the attribute.
            (
                "#define GLOBAL __global__ static\nGLOBAL void k() {}",
                "#define GLOBAL __global__ static GLOBAL void k() {}",
            ),
            ("template <typename T> void run(T* x) { k<T><<<1, 1>>>(x); }", ""),
            (
                "template <typename T, int N = (3>2)> __device__ T f(T x) { return x; }",
                "template <typename T, int N = (3>2)> __device__ T f(T x) { return x; }",
            ),
            ("namespace a { void launch() {} __device__ int g; }", "namespace a { __device__ int g; }"),
            ("extern \"C\" void launch(float* x) { k<<<1,1>>>(x); }", ""),
            (
                "extern \"C\" { __global__ void k() {} int host() { return 1; } }",
                "extern \"C\" { __global__ void k() {} }",
            ),
            // Bindings.
            ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f, \"text { \"); }", ""),
            ("TORCH_LIBRARY(x, m) { m.def(R\"(} ))\"); }", ""),
            ("torch::Tensor f(torch::Tensor x) { return x; }", ""),
            ("torch::Tensor f(torch::Tensor x);", ""),
            ("using namespace torch;\nusing namespace nvcuda;", "using namespace nvcuda;"),
            // Braces in strings, characters and comments.
            (
                "void f() { printf(\"}\"); char c = '{'; /* } */ } // }\n__device__ int x;",
                "// } __device__ int x;",
            ),
            // constexpr stays only where device code mentions it, through other constexpr functions too.
            (
                "constexpr int a() { return 1; } constexpr int b() { return a(); } constexpr int c() { return 2; }\n__device__ int x = b();",
                "constexpr int a() { return 1; } constexpr int b() { return a(); } __device__ int x = b();",
            ),
            ("int cdiv(int a, int b) { return (a + b - 1) / b; }", ""),
            (
                "const int N(4); constexpr int M = 3; const float t[] = {1, 2};",
                "const int N(4); constexpr int M = 3; const float t[] = {1, 2};",
            ),
            (
                "static std::vector<float> cache; cudaStream_t s; cudaTextureObject_t t; __device__ int u;",
                "__device__ int u;",
            ),
            ("struct P { int a; float b; }; struct H { std::string s; };", "struct P { int a; float b; };"),
            (
                "struct F { __device__ float operator()(float x) const { return x; } };",
                "struct F { __device__ float operator()(float x) const { return x; } };",
            ),
            (
                "__global__ void __launch_bounds__(256, 2) k(float* x)\n{\n  if (*x < 0) { *x = 0; }\n}",
                "__global__ void __launch_bounds__(256, 2) k(float* x) { if (*x < 0) { *x = 0; } }",
            ),
            (
                "#include <vector> // host\n# include <mma.h>\n#include \"my.h\"",
                "# include <mma.h> #include \"my.h\"",
            ),
            ("void launch() {\n#ifdef A\n  if (1) {\n#else\n  if (2) {\n#endif\n  } }\n}\n", ""),
            ("int broken( {", "int broken( {"),
            // Variables of the host, and prototypes that mention const.
            (
                "int n = 1 << 20; float *d_x, *d_y; static const char *name = \"a\"; const char* const kept = \"b\"; const float eps = 1e-5f;",
                "const char* const kept = \"b\"; const float eps = 1e-5f;",
            ),
            (
                "typedef float (*op_t)(float, int); __device__ op_t op; typedef void (*done_t)(cudaStream_t, void*);",
                "typedef float (*op_t)(float, int); __device__ op_t op;",
            ),
            ("extern \"C\" void gold(float* out, const unsigned int n); const float* row(int i);", ""),
            (
                "typedef float real; using index_t = int; struct S; extern __shared__ float s[];",
                "typedef float real; using index_t = int; struct S; extern __shared__ float s[];",
            ),
            (
                "#include <windows.h>\n#include <GL/gl.h>\n#include <typeinfo>\n__device__ int x;",
                "__device__ int x;",
            ),
        ];
        for (source, want) in cases {
            assert_eq!(left(source), want, "of {source}");
        }
    }

    #[test]
    fn the_parameters_of_a_kernel_are_found() {
        let s = "template <typename T> __global__ void a(T* x) {}\n\
                 namespace n { __global__ void __launch_bounds__(64) b(const float* __restrict__ x, // in\n int n) {} }\n\
                 void b(int) {}";
        assert_eq!(kernel_parameters(s, "a<float>").as_deref(), Some("T* x"));
        assert_eq!(kernel_parameters(s, "n::b").as_deref(), Some("const float* __restrict__ x, int n"));
        assert_eq!(kernel_parameters(s, "c"), None);
        assert_eq!(kernel_names(s), ["a<…>", "n::b"]);
    }

    #[test]
    fn a_kernel_alone_has_every_line_and_column_where_it_was() {
        let s = "constexpr int T = 4;\ntemplate <typename X> __global__ void a(X* x)\n{\n  #pragma unroll\n  \
                 for (int i = 0; i < T; ++i) x[i] = 1;\n}\n__device__ int f() { return 1; } \
                 __global__ void b(int* p) { *p = f(); }\n";
        let texts = kernel_texts(s).unwrap();
        assert!(texts.kernels.keys().eq(["a", "b"]));
        assert_eq!(texts.rest, "constexpr int T = 4;\n\n\n\n\n\n__device__ int f() { return 1; }\n");
        let b = &texts.kernels["b"];
        assert_eq!((b.lines().count(), b.lines().nth(6)), (7, s.lines().nth(6)));
        assert!(!b.contains("unroll") && texts.kernels["a"].contains("x[i] = 1"));
        // An edit in one kernel leaves the other's text as it is.
        assert_eq!(kernel_texts(&s.replace("x[i] = 1", "x[i] = -1000")).unwrap().kernels["b"], *b);
        assert_eq!(KernelTexts::base("::n::a<float, 3>"), "a");
    }

    #[test]
    fn kernels_that_cannot_be_left_out_are_not_taken_apart() {
        let whole = [
            "__global__ void a(int*); __global__ void a(int* p) {}",
            "__global__ void a(int*) {} __global__ void a(float*) {}",
            "template <int N> __global__ void a() {} template __global__ void a<3>();",
            "__global__ void a() {\n#define T 3\n}\n__global__ void b() {}",
            "__global__ void a() {\n#if T\n}\n#else\n}\n#endif\n__global__ void b() {}",
            "__global__ void a() {} __device__ void (*p)() = a;",
            "__global__ void a() {} __global__ void b() { a<<<1, 1>>>(); }",
            "__global__ void a() { int n = __COUNTER__; } __global__ void b() {}",
            "__device__ const char* s = R\"(x  \n)\"; __global__ void a() {}",
        ];
        for source in whole {
            assert_eq!(kernel_texts(source), None, "{source}");
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic() {
        let pieces = [
            "{",
            "}",
            "(",
            ")",
            "<",
            ">>>",
            "template",
            "\"",
            "'",
            "/*",
            "#if",
            "é",
            "namespace x",
            ";",
            "void f",
            "R\"(",
        ];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    let s = format!("{a} {b}\n{c}");
                    assert_eq!(device_source(&s).len(), s.len());
                    let _ = kernel_texts(&s);
                }
            }
        }
    }
}
