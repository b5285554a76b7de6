//! Sources that want to read the host, or to use it up: each ends in an error of its own.

mod common;

use assay_nvrtc::{CompileErrorKind, Compiler, Limits, Options, Unit};
use common::{compiler, compiler_with, unit};

/// Ways to name a file, `PATH` standing for its path. `x` is what the kernel stores, so a source may also tell what it
/// found through it.
const PROBES: &[&str] = &[
    "#include \"PATH\"\nint x;",
    "#include <PATH>\nint x;",
    "#include \"/../PATH\"\nint x;",
    "#include \"./..//../../../../../../../..PATH\"\nint x;",
    "#include \"cuda/../../../../../../../../../../..PATH\"\nint x;",
    "#inc\\\nlude \"PATH\"\nint x;",
    "#\\\n\\\ninclude \\\n\"PATH\"\nint x;",
    "# /* comment */ include /* \" */ \"PATH\"\nint x;",
    "%:include \"PATH\"\nint x;",
    "??=include \"PATH\"\nint x;",
    "#define F \"PATH\"\n#include F\nint x;",
    "#define F <PATH>\n#include F\nint x;",
    "#define S(a) #a\n#define T(a) S(a)\n#include T(PATH)\nint x;",
    "#define EMPTY\n#include EMPTY \"PATH\"\nint x;",
    "#define CAT(a, b) a##b\n#include CAT(\"PATH,\")\nint x;",
    "#include_next \"PATH\"\nint x;",
    "#include_next <PATH>\nint x;",
    "#import \"PATH\"\nint x;",
    "#embed \"PATH\"\nint x;",
    "__device__ const unsigned char bytes[] = {\n#embed \"PATH\"\n};\nint x;",
    "#if __has_include(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if __has_include(<PATH>)\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#ifdef __has_include\n#if __has_include (\\\n\"PATH\")\n__device__ int x = 1;\n#endif\n#endif\n__device__ int z;",
    "#define H __has_include\n#if H(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#define H(f) __has_include(f)\n#if H(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#define P(a, b) a##b\n#if P(__has_, include)(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#define P(a, b) a%:%:b\n#if P(__has_, include)(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if 0\n#elif __has_include(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if __has_in\\\nclude(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if __has_include_next(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if __has_include_next(<PATH>)\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if __has_embed(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "#if __is_identifier(__has_include) || __has_include(\"PATH\")\n__device__ int x = 1;\n#else\n__device__ int x = 2;\n#endif",
    "_Pragma(\"include_alias(\\\"math.h\\\", \\\"PATH\\\")\")\n#include \"math.h\"\nint x;",
    "#pragma include_alias(\"math.h\", \"PATH\")\n#include \"math.h\"\nint x;",
    "_Pragma(\"GCC dependency \\\"PATH\\\"\")\nint x;",
    "#pragma GCC dependency \"PATH\"\nint x;",
    "#pragma once\n#line 1 \"PATH\"\n#error here\n",
    "#define NAME __FILE__ \"/../PATH\"\n#include NAME\nint x;",
    "const char* text = R\"(\n#include \"nothing\")\";\n#include \"PATH\"\nint x;",
    "const char* text = R\"x(\" )x\"; /*\n*/ #include \"PATH\"\nint x;",
    "/* \\\n*\\\n/\n#include \"PATH\"\nint x;",
    "// \\\n/*\n#include \"PATH\"\n// */\nint x;",
    "#if 0\n'\n#endif\n#include \"PATH\"\nint x;",
    "__device__ int x;\n__device__ void f() { asm(\".incbin \\\"PATH\\\"\"); }",
    "__device__ int x;\n__device__ void f() { asm(\".include \\\"PATH\\\"\"); }",
    "__device__ int x;\nasm(\".incbin \\\"PATH\\\"\");",
    "import <PATH>;\nint x;",
    "import \"PATH\";\nint x;",
    "module;\n#include \"PATH\"\nexport module m;\nint x;",
];

fn units(path: &str) -> Vec<Unit> {
    PROBES
        .iter()
        .map(|p| {
            unit(&format!("{}\n__global__ void k(int* y) {{ y[0] = 1; }}\n", p.replace("PATH", path)), &["k"])
        })
        .collect()
}

/// What a source can learn: whether it compiles, to what, and what the log says, the path aside.
fn seen(compiler: &Compiler, options: &Options, path: &str) -> Vec<Result<String, String>> {
    compiler
        .compile(options, &units(path))
        .into_iter()
        .map(|r| match r {
            Ok(image) => Ok(image.ptx.replace(path, "PATH")),
            Err(e) => Err(e.log.replace(path, "PATH")),
        })
        .collect()
}

#[test]
fn no_spelling_of_an_include_tells_a_file_that_is_there_from_one_that_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    // Two paths of one length; one is a header that even compiles, and one is behind a link.
    let (there, gone, link) = (folder.join("is.h"), folder.join("no.h"), folder.join("ln.h"));
    std::fs::write(&there, "__device__ int secret_4711 = 1;\n").unwrap();
    std::os::unix::fs::symlink(&there, &link).unwrap();
    let open = compiler_with(Limits { landlock: false, ..Limits::default() });
    let mine = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&there, mine.path().join("linked.h")).unwrap();
    for (name, compiler) in [("confined", compiler()), ("unconfined", &open)] {
        let options = Options::default();
        let with = seen(compiler, &options, there.to_str().unwrap());
        let without = seen(compiler, &options, gone.to_str().unwrap());
        let linked = seen(compiler, &options, link.to_str().unwrap());
        for (k, probe) in PROBES.iter().enumerate() {
            assert_eq!(with[k], without[k], "{name}: {probe}");
            assert_eq!(linked[k], without[k], "{name}, linked: {probe}");
            let text = with[k].as_ref().unwrap_or_else(|e| e);
            assert!(!text.contains("secret_4711"), "{name}: {probe}: {text}");
        }
        // At least the plain ones are refused, not ignored.
        assert!(with[..20].iter().filter(|r| r.is_err()).count() >= 18, "{name}: {with:#?}");
        // A link in a given folder leads nowhere else.
        let options = Options { include_dirs: vec![mine.path().to_owned()], ..Options::default() };
        let sources = [
            "#include \"linked.h\"\n__global__ void k(int* y) { y[0] = secret_4711; }",
            "#include \"../PATH\"\n__global__ void k(int* y) { y[0] = secret_4711; }",
        ];
        let list: Vec<Unit> = sources
            .iter()
            .map(|s| {
                let name = folder.file_name().unwrap().to_str().unwrap();
                unit(&s.replace("PATH", &format!("{name}/is.h")), &["k"])
            })
            .collect();
        for (source, result) in sources.iter().zip(compiler.compile(&options, &list)) {
            assert!(result.is_err(), "{name}: {source}");
        }
    }
}

#[test]
fn bombs_end_with_their_own_error_in_the_time_and_memory_allowed() {
    let limits = Limits { wall_seconds: 20, cpu_seconds: 1, memory_bytes: 2 << 30, ..Limits::default() };
    let compiler = compiler_with(limits);
    let kernel = "\nextern \"C\" __global__ void k(float* y) { y[0] = N; }\n";
    let macros: String =
        (1..9).map(|k| format!("#define A{k} {}\n", format!("A{} ", k - 1).repeat(10))).collect();
    let bombs = [
        // Templates: without end, doubling types, a tree.
        "template <int N> struct B { enum { v = B<N * 2>::v + B<N * 2 + 1>::v }; };\n#define N B<1>::v".to_owned(),
        "template <class A, class B> struct P {}; template <int N, class T> struct G { typedef typename \
         G<N - 1, P<T, T>>::t t; };\ntemplate <class T> struct G<0, T> { typedef T t; };\n#define N sizeof(G<60, int>::t)"
            .to_owned(),
        "template <class T> struct Q { typedef typename Q<Q<T>>::t t; };\n#define N sizeof(Q<int>::t)".to_owned(),
        // Constant evaluation without end.
        "constexpr unsigned f(unsigned n) { unsigned x = 1; while (n) { x = x * 3 + 1; n += x & 1 ? 2 : 0; } return x; }\n\
         constexpr unsigned V = f(1);\n#define N V"
            .to_owned(),
        "constexpr unsigned g(unsigned n) { return n == 0 ? 1 : g(n - 1) + g(n - 1); }\nconstexpr unsigned V = g(400);\n\
         #define N V"
            .to_owned(),
        // Macros.
        format!("#define A0 +1+1+1+1+1+1+1+1+1+1\n{macros}#define N 1 A8"),
        // An array with every element given.
        "__device__ int a[1 << 28] = {1};\n#define N a[3]".to_owned(),
        // Brackets, and operators, nested beyond reason.
        format!("#define N {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("#define N {}1", "-+~!".repeat(100_000)),
        // Lambdas in lambdas.
        format!("#define N {}1{}", "[&]{return ".repeat(300), ";}()".repeat(300)),
    ];
    let list: Vec<Unit> = bombs.iter().map(|b| unit(&format!("{b}{kernel}"), &["k"])).collect();
    let mut all = list.clone();
    all.push(unit(&format!("#define N 7{kernel}"), &["k"]));
    // One call each: bombs share none.
    for (k, unit) in all.iter().enumerate() {
        let result = compiler.compile(&Options::default(), std::slice::from_ref(unit)).remove(0);
        if k == list.len() {
            assert!(result.is_ok(), "the compiler works on: {result:?}");
        } else if let Err(e) = result {
            let kinds = [CompileErrorKind::Rejected, CompileErrorKind::TimedOut, CompileErrorKind::Crashed];
            assert!(kinds.contains(&e.kind), "bomb {k}: {e}");
            assert!(e.log.len() <= 80 << 10 && !e.lines.is_empty(), "bomb {k}: {} bytes of log", e.log.len());
        }
    }
}

#[test]
fn a_log_of_a_hundred_megabytes_is_cut() {
    // Type names that double: the message spells one out.
    let source = |depth: u32| {
        format!(
            "template <class A, class B> struct Pair {{}};\n\
             template <int N, class T> struct G : G<N - 1, Pair<T, T>> {{}};\n\
             template <class T> struct G<0, T> {{ static_assert(sizeof(T) == 0, \"told\"); }};\n\
             __global__ void k(int* y) {{ G<{depth}, int> g; y[0] = sizeof(g); }}\n"
        )
    };
    for depth in [12, 24] {
        let result = compiler().compile(&Options::default(), &[unit(&source(depth), &["k"])]).remove(0);
        let e = result.expect_err("the assertion fails");
        assert!(e.log.len() < 70_000, "{} bytes", e.log.len());
    }
}
