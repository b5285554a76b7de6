//! Batches, faults and their places, with the real compiler.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_nvrtc::{CompileErrorKind, Limits, NvrtcError, Options, Unit, WorkerCommand};
use common::{compiler, compiler_with, install, single, unit, worker};

const GOOD: &str = "__global__ void k(float* x) { x[threadIdx.x] = 2.0f; }";

#[test]
fn an_image_has_ptx_entries_and_identities() {
    let image = single(&unit(
        "template <typename T, int N> __global__ void scale(T* x) { x[threadIdx.x] *= N; }\n\
         namespace inner { __global__ void k(int* x) { x[0] = 1; } }\n\
         extern \"C\" __global__ void plain(float* x) { x[0] = INFINITY; }",
        &["scale<float,3>", "inner::k", "plain"],
    ));
    for (name, entry) in &image.entries {
        assert!(image.ptx.contains(&format!(".entry {entry}(")), "{name} is {entry}");
        assert_eq!(image.identity[name].len(), 64);
    }
    assert_eq!(image.entries.len(), 3);
    assert!(image.ptx.contains(".target sm_90") && image.ptx.contains("\"kernel.cu\""));
}

#[test]
fn faulty_units_cost_only_themselves_and_name_their_lines() {
    let cases: &[(&str, &[&str], Option<u32>)] = &[
        (GOOD, &["k"], None),
        ("\n\n__global__ void k(float* x) { x[0] = nosuch; }", &["k"], Some(3)),
        ("#include <cuda_fp16.h>\n__global__ void k(__half* x) { x[0] = x[1] * x[2]; }", &["k"], None),
        ("#include <cuda_fp16.h>\n__global__ void k(__half* x) {\n  x[0].nosuch(); }", &["k"], Some(3)),
        ("__global__ void k(float* x) {\n  x[0] = 1; ", &["k"], Some(2)),
        ("__global__ void k(float* x) { x[0] = 1; }\n}", &["k"], Some(2)),
        ("#if 1\n__global__ void k(float* x) { x[0] = 1; }", &["k"], Some(1)),
        ("__global__ void k(float* x) { x[0] = 1; }\n/* open", &["k"], Some(2)),
        ("__global__ void k(float* x) { x[0] = 1; }\n__device__ const char* s = R\"(open\n", &["k"], Some(2)),
        (GOOD, &["k"], None),
        ("__device__ float g(float);\n__global__ void k(float* x) { x[0] = g(x[1]); }", &["k"], None),
        ("#define N 4\n__global__ void k(float* x) { x[0] = N; }", &["k"], None),
        ("#define N 5\n#define M(a) (a) + N\n__global__ void k(float* x) { x[0] = M(1); }", &["k"], None),
        ("__global__ void k(float* x) {\n#error N is gone\n }", &["k"], Some(2)),
        ("#ifndef N\n__global__ void k(float* x) { x[0] = 9; }\n#endif", &["k"], None),
    ];
    let units: Vec<Unit> = cases.iter().map(|(source, kernels, _)| unit(source, kernels)).collect();
    let results = compiler().compile(&Options::default(), &units);
    for (at, ((source, _, line), result)) in cases.iter().zip(&results).enumerate() {
        match (line, result) {
            (None, Ok(image)) => {
                assert_eq!(image.identity["k"], single(&units[at]).identity["k"], "{source}")
            }
            (Some(line), Err(error)) => {
                assert_eq!(error.kind, CompileErrorKind::Rejected);
                assert_eq!(error.lines[0].line, Some(*line), "{source}\n{}", error.log);
                assert!(!error.log.contains("assay"), "{}", error.log);
            }
            // A function that nothing defines is found at the end, without a line.
            (None, Err(error)) => {
                assert!(source.contains("g(float)"), "{source}\n{}", error.log);
                assert!(error.log.contains("_Z1gf"), "{}", error.log);
            }
            (Some(_), Ok(_)) => panic!("compiles: {source}"),
        }
    }
}

#[test]
fn a_kernel_that_does_not_exist_is_an_error_of_its_unit() {
    let units = [
        unit(GOOD, &["k"]),
        unit(GOOD, &["k", "nosuch"]),
        unit(GOOD, &["k"]),
        unit(GOOD, &["k<int>"]),
        unit(GOOD, &["k; int"]),
    ];
    let results = compiler().compile(&Options::default(), &units);
    assert!(results[0].is_ok() && results[2].is_ok());
    for (at, word) in [(1, "nosuch"), (3, "k"), (4, "k; int")] {
        let error = results[at].as_ref().expect_err("a kernel that is not there");
        assert!(error.log.contains(word), "{}", error.log);
    }
}

#[test]
fn names_do_not_collide_in_a_batch() {
    let sources = [
        "extern __shared__ float s[];\nextern \"C\" __global__ void k(float* x) { s[threadIdx.x] = x[1]; \
         __syncthreads(); x[0] = s[0]; }",
        "extern __shared__ double s[];\nextern \"C\" __global__ void k(double* x) { s[threadIdx.x] = x[1]; \
         __syncthreads(); x[0] = s[0]; }",
        "extern \"C\" {\n__global__ void k(int* x) { x[0] = 1; }\n}",
        "using namespace nvcuda;\n#pragma unroll\n__device__ int g = 3;\n__global__ void k(int* x) { x[0] = g; }",
        "__device__ float g = 3;\nstruct P { int a; };\ntemplate <class T> __global__ void t(T* x) { x->a = g; }\n\
         __global__ void k(int* x) { x[0] = 7; }",
        "__device__ float atomicMax(float* a, float v) { return __int_as_float(atomicMax((int*)a, \
         __float_as_int(v))); }\n__global__ void k(float* x) { atomicMax(x, 3.0f); atomicMax((int*)x, 3); }",
        "__device__ float max(float a, float b) { return a > b ? a : b; }\n__global__ void k(int* x) { x[0] = \
         max(x[1], x[2]); }",
        "#define FLT_MAX 3.0f\n__global__ void k(float* x) { x[0] = FLT_MAX; }",
        "__global__ void k(float* x) { x[0] = FLT_MAX; }",
        "__global__ void k(float* x) { x[0] = ::k == nullptr; }",
    ];
    let mut units: Vec<Unit> = sources.iter().map(|s| unit(s, &["k"])).collect();
    units[4].kernels.push("t<P>".into());
    // `max(float, float)` beside the built-in overloads is ambiguous or not as the compiler decides: alone and in a
    // batch alike.
    let results = compiler().compile(&Options::default(), &units);
    for (unit, result) in units.iter().zip(&results) {
        let alone = compiler().compile(&Options::default(), std::slice::from_ref(unit)).remove(0);
        match (result, &alone) {
            (Ok(a), Ok(b)) => assert_eq!(a.identity, b.identity, "{}", unit.source),
            (Err(a), Err(b)) => assert_eq!(a, b),
            (a, b) => panic!("{}: {a:?}, alone {b:?}", unit.source),
        }
    }
    assert!(results.iter().filter(|r| r.is_ok()).count() >= 8);
    // Those that can share a call did.
    let calls: BTreeSet<*const u8> = results.iter().flatten().map(|i| i.ptx.as_ptr()).collect();
    assert!(calls.len() <= 4, "{} calls", calls.len());
}

#[test]
fn no_file_outside_the_given_folders_is_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.h"), "#define MINE 7\n").unwrap();
    std::fs::write(dir.path().join("outside.h"), "#include \"/etc/passwd\"\n").unwrap();
    let mut units = vec![
        unit("#include \"/etc/passwd\"\n__global__ void k() {}", &["k"]),
        unit("\n#include \"../../../../etc/passwd\"\n", &[]),
        unit("#include \"mine.h\"\n__global__ void k(int* x) { x[0] = MINE; }", &["k"]),
        unit("#include \"outside.h\"\n__global__ void k() {}", &["k"]),
        unit("#if __has_include(\"/etc/passwd\")\n#error seen\n#endif\n", &[]),
    ];
    let options = Options { include_dirs: vec![dir.path().to_owned()], ..Options::default() };
    let results = compiler().compile(&options, &units);
    for (at, line) in [(0, Some(1)), (1, Some(2)), (4, Some(1))] {
        let error = results[at].as_ref().expect_err("refused");
        assert_eq!(error.lines[0].line, line, "{}", error.log);
        assert!(!error.log.contains("root"), "{}", error.log);
    }
    assert!(results[2].is_ok(), "{:?}", results[2]);
    let error = results[3].as_ref().expect_err("a header of the folder asks for another file");
    assert!(error.log.contains("outside.h") && !error.log.contains("root"), "{}", error.log);
    // The same where the kernel confines nothing.
    let open = compiler_with(Limits { landlock: false, ..Limits::default() });
    assert!(!open.is_confined());
    let unconfined = open.compile(&options, &units);
    assert_eq!(unconfined.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, false, true, false, false]);
    // Without the folder its header is not there.
    let other = compiler().compile(&Options::default(), &units.split_off(2)[..1]);
    assert!(other[0].as_ref().is_err_and(|e| e.log.contains("mine.h")));
}

#[test]
fn a_unit_that_never_ends_costs_its_own_time_only() {
    let limits = Limits { wall_seconds: 1, cpu_seconds: 30, ..Limits::default() };
    let compiler = compiler_with(limits);
    let heavy = "#define R2(x) x x\n#define R4(x) R2(x) R2(x)\n#define R16(x) R4(R4(x))\n#define R256(x) R16(R16(x))\n\
                 __global__ void k(float* x) { R256(R256(x[0] = x[1] * x[0] + sinf(x[2]);)) }";
    let slow = compiler_with(Limits { wall_seconds: 60, cpu_seconds: 1, ..Limits::default() });
    let error = slow.compile(&Options::default(), &[unit(heavy, &["k"])]).remove(0).expect_err("never ends");
    assert_eq!(error.kind, CompileErrorKind::TimedOut, "{error}");
    let started = Instant::now();
    let units = [unit(GOOD, &["k"]), unit(heavy, &["k"]), unit(GOOD, &["k"])];
    let results = compiler.compile(&Options::default(), &units);
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!(results[1].as_ref().expect_err("never ends").kind, CompileErrorKind::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_unit_that_takes_the_compiler_down_costs_itself_only() {
    // A quarter of a billion initialised elements do not fit into the memory allowed.
    let large = "__device__ int a[1 << 28] = {1};\n__global__ void k(int* x) { x[0] = a[x[1]]; }";
    let compiler = compiler_with(Limits { memory_bytes: 1 << 30, ..Limits::default() });
    let units = [unit(GOOD, &["k"]), unit(large, &["k"]), unit(GOOD, &["k"])];
    let results = compiler.compile(&Options::default(), &units);
    assert!(results[0].is_ok() && results[2].is_ok());
    let error = results[1].as_ref().expect_err("too large");
    assert_eq!(error.kind, CompileErrorKind::Crashed, "{error}");
    assert!(compiler.compile(&Options::default(), &units[..1])[0].is_ok());
}

#[test]
fn a_long_log_is_cut() {
    let compiler = compiler_with(Limits { log_bytes: 1000, ..Limits::default() });
    let source = "__global__ void k(int* x) { x[0] = nosuch; }\n".repeat(50);
    let error = compiler.compile(&Options::default(), &[unit(&source, &[])]).remove(0).expect_err("fails");
    assert!(error.log.len() < 1100 && error.log.contains("log cut"), "{}", error.log);
}

#[test]
fn options_reach_the_compiler_and_bad_ones_are_refused() {
    let source = "__global__ void k(float* x) { x[0] = x[1] * x[2] + x[3] / x[4] + (VALUE); }";
    let with = |options: Options| compiler().compile(&options, &[unit(source, &["k"])]).remove(0);
    let define = |v: &str| vec![("VALUE".to_owned(), v.to_owned())];
    let base = Options { defines: define("1"), ..Options::default() };
    let plain = with(base.clone()).unwrap();
    for changed in [
        Options { defines: define("2"), ..base.clone() },
        Options { fmad: false, ..base.clone() },
        Options { fast_math: true, ..base.clone() },
    ] {
        assert_ne!(with(changed).unwrap().identity["k"], plain.identity["k"]);
    }
    assert!(with(Options { arch: "sm_80".into(), ..base.clone() }).unwrap().ptx.contains(".target sm_80"));
    assert!(with(Options { std: "c++20".into(), ..base.clone() }).is_ok());
    for bad in [
        Options { arch: "compute_90".into(), ..base.clone() },
        Options { std: "c++17 -I/".into(), ..base.clone() },
        Options { defines: vec![("A B".into(), "".into())], ..base.clone() },
        Options { include_dirs: vec!["/no/such/folder".into()], ..base.clone() },
    ] {
        assert_eq!(with(bad).expect_err("refused").kind, CompileErrorKind::Options);
    }
}

#[test]
fn headers_of_the_host_are_there_and_empty() {
    let source = "#include <cuda_runtime.h>\n#include <math.h>\n#include <stdint.h>\n#include <cstdio>\n\
                  __global__ void k(uint32_t* x) { x[0] = UINT_MAX; printf(\"%d\", INT_MIN); float f = NAN + HUGE_VAL + FLT_MAX * M_PI; x[1] = f; }";
    assert!(single(&unit(source, &["k"])).identity.contains_key("k"));
}

#[test]
fn a_worker_that_is_none_is_an_error_not_a_hang() {
    for program in ["/no/such/program", "/bin/true", "/bin/cat"] {
        let command = WorkerCommand { program: program.into(), args: vec![] };
        let compiler = assay_nvrtc::Compiler::new(install(), command, 1, Limits::default());
        let error =
            compiler.compile(&Options::default(), &[unit(GOOD, &["k"])]).remove(0).expect_err("no worker");
        assert_eq!(error.kind, CompileErrorKind::Unavailable, "{error}");
    }
}

#[test]
fn the_host_never_loads_the_compiler() {
    assert!(single(&unit(GOOD, &["k"])).identity.contains_key("k"));
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("libnvrtc"));
}

#[test]
fn the_install_is_found_again_and_whole() {
    let found = install();
    assert!(
        found.library.is_file() && found.include.join("cuda_fp16.h").is_file() || found.version < "13".into()
    );
    assert!(Path::new(&worker().program).is_file());
}

#[test]
fn a_bad_override_says_what_to_do() {
    // The environment belongs to the whole process, so another process asks.
    let exe = std::env::current_exe().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ask = |key: &str, value: &Path, extra: &[(&str, &str)]| {
        let output = std::process::Command::new(&exe)
            .args(["--ignored", "--exact", "ask_for_the_install", "--nocapture"])
            .env("ASSAY_CACHE", dir.path())
            .env_remove("ASSAY_NVRTC")
            .env(key, value)
            .envs(extra.iter().copied())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = dir.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    for (path, word) in
        [(Path::new("/no/such.so"), "does not exist"), (dir.path(), "not a file"), (&text, "loaded")]
    {
        let said = ask("ASSAY_NVRTC", path, &[]);
        assert!(said.contains("`ASSAY_NVRTC` names") && said.contains(word), "{said}");
    }
    let named = ask("ASSAY_NVRTC", &install().library, &[]);
    assert!(named.contains("found 13."), "{named}");
    // Without a network: pip finds no index at a closed port.
    let offline =
        [("PIP_INDEX_URL", "http://127.0.0.1:9/"), ("PIP_RETRIES", "0"), ("PIP_CONFIG_FILE", "/dev/null")];
    let fresh = tempfile::tempdir().unwrap();
    let said = ask("ASSAY_CACHE", fresh.path(), &offline);
    assert!(said.contains("cannot download NVRTC") && said.contains("pip download"), "{said}");
    let left: Vec<_> =
        std::fs::read_dir(fresh.path()).unwrap().filter_map(Result::ok).map(|e| e.file_name()).collect();
    assert_eq!(left, ["nvrtc.lock"], "nothing is left half-done");
}

#[test]
#[ignore = "run by `a_bad_override_says_what_to_do` in a process of its own"]
fn ask_for_the_install() {
    match assay_nvrtc::Install::locate_or_install(&worker(), &mut |_| ()) {
        Ok(install) => println!("found {}", install.version),
        Err(error @ (NvrtcError::BadOverride { .. } | NvrtcError::Download { .. })) => println!("{error}"),
        Err(other) => println!("other: {other}"),
    }
}
