//! Files and kernels that want to use up the host: each ends in a clear status, in bounded time, memory and text.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::support::{Answer, Running, command, fixture};

/// What the command may map, in bytes.
const MEMORY: u64 = 8 << 30;

/// `assay run` of one kernel in one warp, with a limit on memory.
fn run(file: &str, kernel: &str, more: &[&str]) -> Answer {
    let mut c = command(&["run", file, "--kernel", kernel, "--grid", "1", "--block", "32"]);
    c.args(["--arg", "y=f32[64]:zeros"]).args(more);
    let limit = libc::rlimit { rlim_cur: MEMORY, rlim_max: MEMORY };
    // SAFETY: between fork and exec only an async-signal-safe call is made, on a plain struct.
    unsafe {
        c.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let answer = Running::start(&mut c).finish();
    assert!(answer.stdout.len() + answer.stderr.len() < 4 << 20, "{} bytes of text", answer.stdout.len());
    answer
}

#[test]
fn kernels_without_end_or_measure_end_in_their_status() {
    let file = fixture("kernels/hostile.cu");
    run(&file, "recursion", &[]).exits(5);
    run(&file, "local_array", &[]).exits(4).says(&["local memory"]);
    let shared = run(&file, "shared_array", &["--json"]).exits(1).json();
    assert_eq!(shared["findings"][0]["kind"], "invalid_launch");
    let dynamic = run(&file, "assert_flood", &["--json", "--shared", "99999999999999"]).exits(1).json();
    assert_eq!(dynamic["findings"][0]["kind"], "invalid_launch");
    let asserts = run(&file, "assert_flood", &["--json"]).exits(1).json();
    assert_eq!(asserts["findings"].as_array().map(Vec::len), Some(1), "{}", asserts["findings"]);
}

#[test]
fn a_flood_of_printf_is_exhausted_and_its_text_bounded() {
    let answer = run(&fixture("kernels/hostile.cu"), "printf_flood", &["--json"]).exits(5).json();
    assert_eq!(answer["status"], "exhausted");
    let lines = answer["printf"].as_array().expect("a list").len();
    assert!((1000..=10_000).contains(&lines), "{lines}");
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> String {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn files_that_are_no_text_or_too_long_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = "extern \"C\" __global__ void k(float* y) { y[0] = 1; }\n";
    let nul = kernel.replace("y[0]", "\0y[0]");
    run(&write(dir.path(), "nul.cu", nul.as_bytes()), "k", &[]).exits(2).says(&["NUL"]);
    let mut latin = b"// \xff\xfe\n".to_vec();
    latin.extend(kernel.bytes());
    run(&write(dir.path(), "latin.cu", &latin), "k", &[]).exits(2).says(&["UTF-8"]);
    run(&write(dir.path(), "latin.ptx", &latin), "k", &[]).exits(2).says(&["UTF-8"]);
    let mut long = b"// x\n".repeat(20_000_000);
    long.extend(kernel.bytes());
    for name in ["long.cu", "long.ptx"] {
        run(&write(dir.path(), name, &long), "k", &[]).exits(2).says(&["bytes"]);
    }
    let name = format!("__device__ int {} = b;\n{kernel}", "a".repeat(3_000_000));
    run(&write(dir.path(), "name.cu", name.as_bytes()), "k", &[]).exits(2);
}

#[test]
fn ptx_beyond_measure_ends_in_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let head = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let kernel = |globals: &str, body: &str| {
        format!("{head}{globals}\n.visible .entry k(.param .u64 y)\n{{\n{body}\nret;\n}}\n")
    };
    let many = |n: usize, f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join("");
    let live = format!(
        ".reg .b32 %r<60000>;\n.reg .b64 %d;\nld.param.u64 %d, [y];\n{}{}",
        many(60_000, &|k| format!("ld.global.u32 %r{k}, [%d];\n")),
        many(60_000, &|k| format!("add.u32 %r0, %r0, %r{k};\n"))
    );
    let cases: Vec<(&str, String, &[i32])> = vec![
        ("registers", kernel("", ".reg .b32 %r<2000000000>;\nadd.u32 %r1, %r1999999999, 1;"), &[0]),
        ("live", kernel("", &live), &[0, 4, 5]),
        ("nesting", kernel("", &format!("{}{}", "{".repeat(100_000), "}".repeat(100_000))), &[4]),
        ("shared", kernel("", ".shared .b8 s[9223372036854775807];\n.reg .b32 %r;\nmov.u32 %r, s;"), &[1]),
        (
            "shared_twice",
            kernel(
                "",
                ".shared .b8 s[9223372036854775807];\n.shared .b8 t[9223372036854775807];\n.reg .b32 %r;\nmov.u32 %r, t;",
            ),
            &[1],
        ),
        (
            "local",
            kernel("", ".local .b8 s[8589934592];\n.reg .b64 %r;\nmov.u64 %r, s;\nst.local.u8 [%r], 1;"),
            &[4],
        ),
        (
            "global",
            kernel(
                ".global .b8 g[9223372036854775807];",
                ".reg .b64 %r;\nmov.u64 %r, g;\nst.global.u8 [%r], 1;",
            ),
            &[1, 4, 5],
        ),
        ("vector", kernel("", &format!(".reg .b32 %r;\nmov.b64 {{{}%r}}, 0;", "%r,".repeat(300_000))), &[2]),
        (
            "labels",
            kernel(
                "",
                &many(100_000, &|k| format!("L{k}: bra L{};\n", k + 1)).replace("bra L100000", "bra L0"),
            ),
            &[5],
        ),
        ("parameter", format!("{head}.visible .entry k(.param .b8 y[4000000000])\n{{\nret;\n}}\n"), &[2]),
        (
            "calls",
            format!(
                "{head}{}\n{}.func f9999 {{ ret; }}\n.visible .entry k(.param .u64 y)\n{{\ncall f0, ();\nret;\n}}\n",
                many(10_000, &|k| format!(".func f{k};\n")),
                many(9_999, &|k| format!(".func f{k} {{ call f{0}, (); call f{0}, (); ret; }}\n", k + 1))
            ),
            &[5],
        ),
    ];
    for (name, text, exits) in cases {
        let answer = run(&write(dir.path(), &format!("{name}.ptx"), text.as_bytes()), "k", &[]);
        let code = answer.status.code();
        assert!(code.is_some_and(|c| exits.contains(&c)), "{name}: {code:?}: {}", answer.stderr);
        assert!(!answer.stderr.contains("panicked"), "{name}: {}", answer.stderr);
    }
}
