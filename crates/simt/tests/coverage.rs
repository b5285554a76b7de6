//! What of PTX the device runs: every spelling that NVRTC was seen to emit, the PTX of its other versions and targets,
//! and what the cases of `testdata/ptx` exercise.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assay_ptx::isa::TABLE;
use assay_ptx::{Module, parse_module};
use assay_simt::Loaded;

/// Spellings that NVRTC emitted for many kernels; see the file's other user, the parser's tests.
const SPELLINGS: &str = include_str!("../../ptx/tests/all/nvrtc_spellings.txt");

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx")
}

/// Operands that fit a spelling, found among a few lists of registers.
fn operands(spelling: &str) -> Vec<&'static str> {
    let lists: &[&str] = &[
        "",
        "%p1",
        "%rd1",
        "%r1",
        "%r1, %r2",
        "%h1",
        "%h1, %h2",
        "%rd1, %rd2",
        "%h1, %h2, %h3",
        "%r1, %r2, %r3",
        "%rd1, %rd2, %rd3",
        "%h1, %h2, %h3, %h4",
        "%r1, %r2, %r3, %r4",
        "%rd1, %rd2, %rd3, %rd4",
        "%r1, %rd1",
        "%rd1, %r1",
        "%h1, %r1",
        "%r1, %h1",
        "%h1, %rd1",
        "%rd1, %h1",
        "%h1, %r1, %r2",
        "%r1, %h1, %h2",
        "%rd1, %r1, %r2",
        "%rd1, %rd2, %r1",
        "%h1, %h2, %r1",
        "%r1, %h1, %h2, %r2",
        "%rd1, %r1, %r2, %rd2",
        "%rd1, %rd2, %r1, %r2",
        "%p1, %p2",
        "%p1, %p2, %p3",
        "%p1, %h1, %h2",
        "%p1, %r1, %r2",
        "%p1, %rd1, %rd2",
        "%p1, %p2, %r1",
        "%p1, %rd1",
        "%h1, %h2, %h3, %p1",
        "%r1, %r2, %r3, %p1",
        "%rd1, %rd2, %rd3, %p1",
        "%r1, %p1, %r2",
        "%r1, %r2, %r3, %r4, %r5",
        "%rd1, %rd2, %rd3, %r1, %r2",
        "%r1, %r2, %r3, %r4, 202",
        "%r1, %r2, %r3, 202",
        "%r1|%p1, %r2, %r3, %r4, %r5",
        "%rd1, %rd2, %r1, %r2, %r3",
        "%h1, %p1",
        "0",
        "0, 64",
        "%p1, 0, %p2",
        "%r1, 0, %p1",
        "L",
        "%r1, T",
        "f",
        "%h1, [%rd1]",
        "%r1, [%rd1]",
        "%rd1, [%rd2]",
        "%h1, [%r1]",
        "%r1, [%r2]",
        "%rd1, [%r1]",
        "[%rd1], %h1",
        "[%rd1], %r1",
        "[%rd1], %rd2",
        "[%r1], %h1",
        "[%r1], %r2",
        "[%r1], %rd1",
        "{%h1, %h2}, [%rd1]",
        "{%r1, %r2}, [%rd1]",
        "{%rd1, %rd2}, [%rd3]",
        "{%h1, %h2, %h3, %h4}, [%rd1]",
        "{%r1, %r2, %r3, %r4}, [%rd1]",
        "{%r1, %r2, %r3, %r4}, [%r5]",
        "[%rd1], {%h1, %h2}",
        "[%rd1], {%r1, %r2}",
        "[%rd1], {%rd2, %rd3}",
        "[%rd1], {%h1, %h2, %h3, %h4}",
        "[%rd1], {%r1, %r2, %r3, %r4}",
        "[%r1], {%r2, %r3, %r4, %r5}",
        "{%h1, %h2}, [in]",
        "%r1, [%rd1], %r2",
        "%rd1, [%rd2], %rd3",
        "%r1, [%r2], %r3",
        "%rd1, [%r1], %rd2",
        "%h1, [%rd1], %h2",
        "%h1, [%rd1], %h2, %h3",
        "%r1, [%rd1], %r2, %r3",
        "%rd1, [%rd2], %rd3, %rd4",
        "%r1, [%r2], %r3, %r4",
        "%r1, [in]",
        "%rd1, [in]",
        "%h1, [in]",
        "{%r1, %r2}, [in]",
        "[arg], %r1",
        "[arg], %rd1",
        "[%r1], [%rd1], 16",
        "1",
        "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4}",
        "{%f1, %f2, %f3, %f4}, {%r5, %r6}, {%r7}, {%f1, %f2, %f3, %f4}",
        "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}",
        "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], %r9",
        "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r10], %r9",
        "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, \
         {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4}",
        "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, \
         {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}",
        "[%rd1], {%r1, %r2, %r3, %r4}, %r9",
        "[%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %r9",
    ];
    lists.iter().copied().filter(|o| parse_module(&module(spelling, o)).is_ok()).collect()
}

fn module(spelling: &str, operands: &str) -> String {
    let mut text = String::from(".version 8.6\n.target sm_100\n.address_size 64\n");
    text += ".func f() { ret; }\n.visible .entry k(.param .align 8 .b8 in[16])\n{\n";
    text += ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<11>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n";
    text += ".param .b64 arg;\n";
    text += "T: .branchtargets L;\n";
    let _ = write!(text, "{spelling} {operands};\nL: ret;\n}}\n");
    text
}

#[test]
fn every_spelling_that_nvrtc_emits_runs() {
    let mut faults = Vec::new();
    let lines = SPELLINGS.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    for spelling in lines {
        let fitting = operands(spelling);
        if fitting.is_empty() {
            faults.push(format!("`{spelling}`: no operands here fit it"));
        }
        for o in fitting {
            let m = parse_module(&module(spelling, o)).expect("it parsed before");
            if let Err(e) = Loaded::new(&m).and_then(|l| l.check("k")) {
                faults.push(format!("`{spelling} {o}`: {e}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            out.push(path);
        }
    }
}

fn parse(path: &Path) -> Module {
    let text = std::fs::read_to_string(path).expect("a readable file");
    parse_module(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn ptx_of_other_versions_and_targets_loads() {
    let mut list = Vec::new();
    files(&testdata().join("versions"), &mut list);
    list.sort();
    let mut versions = BTreeSet::new();
    for path in &list {
        let m = parse(path);
        let loaded = Loaded::new(&m).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for k in loaded.kernels() {
            loaded.check(k).unwrap_or_else(|e| panic!("{}, `{k}`: {e}", path.display()));
        }
        versions.insert(m.version);
    }
    assert!(versions.len() >= 4, "{versions:?}");
}

/// Opcodes that no passing or failing case needs to have, with the reason.
fn excused(name: &str) -> Option<&'static str> {
    Some(match name {
        "barrier.cluster.arrive" | "barrier.cluster.wait" | "getctarank" | "mapa" | "griddepcontrol" => {
            "clusters and dependent launches are refused"
        }
        _ => return None,
    })
}

#[test]
fn every_opcode_occurs_in_a_case() {
    let mut list = Vec::new();
    for folder in ["pass", "fail"] {
        files(&testdata().join(folder), &mut list);
    }
    let mut seen = BTreeSet::new();
    for path in &list {
        for f in &parse(path).functions {
            seen.extend(f.body.iter().map(|i| i.op.name()));
        }
    }
    let missing: Vec<&str> = TABLE
        .iter()
        .map(|row| row.op.name())
        .filter(|name| !seen.contains(name) && excused(name).is_none())
        .collect();
    assert!(missing.is_empty(), "no case of testdata/ptx has {missing:?}");
}

#[test]
fn every_spelling_that_nvrtc_emits_occurs_in_a_case() {
    let mut list = Vec::new();
    for folder in ["pass", "fail"] {
        files(&testdata().join(folder), &mut list);
    }
    let mut seen = BTreeSet::new();
    for path in &list {
        let m = parse(path);
        for f in &m.functions {
            seen.extend(f.body.iter().map(|i| m.spelling(i).to_owned()));
        }
    }
    let missing: Vec<&str> =
        SPELLINGS.lines().filter(|l| !l.is_empty() && !l.starts_with('#') && !seen.contains(*l)).collect();
    assert!(missing.is_empty(), "no case of testdata/ptx has {missing:?}");
}
