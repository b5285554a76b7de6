//! A tiled product whose inner loop is done as chains, against the same text with something between the instructions,
//! so that none is found: the same bits and findings, under every detector and without.

use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, Finding, Init, LaunchSpec, Loaded, Options, Role, Sanitize, Schedule, Session,
};
use assay_tensor::DType;

const MATMUL: &str = include_str!("../../../benches/kernels/matmul.ptx");

/// Nothing may stand between the instructions of a chain.
fn apart(text: &str) -> String {
    let text = text.replace(".reg .pred \t%p<12>;", ".reg .pred \t%p<12>;\n.reg .b32 %apart;");
    let mut out = String::new();
    for line in text.lines() {
        out += line;
        out += "\n";
        if line.trim_start().starts_with("fma.rn.f32") {
            out += "\tmov.b32 %apart, 1;\n";
        }
    }
    assert!(out.matches("%apart, 1").count() == 16 && out.contains("%apart;"));
    out
}

/// The text without its `nth` block barrier.
fn without_barrier(text: &str, nth: usize) -> String {
    let at = text.match_indices("bar.sync \t0;").nth(nth).expect("a barrier").0;
    format!("{}{}", &text[..at], &text[at + "bar.sync \t0;".len()..])
}

fn values(n: usize, edges: bool) -> Vec<u8> {
    let special =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-45, -1e-40, f32::MAX, f32::MIN_POSITIVE];
    let mut state = 1u32;
    let mut value = |k: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        if edges && k % 37 == 5 { special[(state >> 8) as usize % 8] } else { state as f32 / 4.3e9 - 0.5 }
    };
    (0..n).flat_map(|k| value(k).to_le_bytes()).collect()
}

fn run(text: &str, [m, n, k]: [usize; 3], edges: bool, options: &Options) -> (Vec<u8>, Vec<Finding>) {
    let loaded = Arc::new(Loaded::new(&assay_ptx::parse_module(text).unwrap()).unwrap());
    let mut s = Session::new(loaded, options.clone());
    let (a, b) = (values(m * k, edges), values(k * n, edges));
    let mut alloc = |name, size: usize, role, init| {
        s.alloc(BufferSpec::new(name, 4 * size as u64, role, DType::F32, init)).unwrap()
    };
    let pa = alloc("a", m * k, Role::Input, Init::Bytes(&a));
    let pb = alloc("b", k * n, Role::Input, Init::Bytes(&b));
    let pc = alloc("c", m * n, Role::Output, Init::Uninit);
    let int = |v: usize| Arg::Bytes((v as u32).to_le_bytes().to_vec());
    let args = [Arg::Pointer(pa, 0), Arg::Pointer(pb, 0), Arg::Pointer(pc, 0), int(m), int(n), int(k)];
    let o = s.launch(&LaunchSpec {
        kernel: "matmul",
        grid: [n.div_ceil(16) as u64, m.div_ceil(16) as u64, 1],
        block: [16, 16, 1],
        dynamic_shared: 0,
        args: &args,
        blocks: &Blocks::All,
    });
    (s.read(pc).to_vec(), o.findings)
}

#[test]
fn chains_give_the_bits_and_findings_of_single_instructions() {
    let whole = MATMUL.to_owned();
    let texts = [whole.clone(), without_barrier(&whole, 0), without_barrier(&whole, 1)];
    let mut found = 0;
    for (kind, text) in texts.iter().enumerate() {
        for (shape, edges) in [([32, 48, 64], true), ([19, 33, 50], false), ([16, 16, 23], true)] {
            for sanitize in [Sanitize::OFF, Sanitize::ALL] {
                for schedule in [Schedule::Hardware, Schedule::RunAhead] {
                    let options = Options { sanitize, schedule, seed: 3, ..Options::default() };
                    let (bits, findings) = run(text, shape, edges, &options);
                    let (want, expected) = run(&apart(text), shape, edges, &options);
                    let place = format!("text {kind}, {shape:?}, {sanitize:?}, {schedule:?}");
                    // A turn's length in instructions differs, and with it what racing warps see under run-ahead.
                    if kind == 0 || schedule == Schedule::Hardware {
                        assert!(bits == want, "{place}: bits differ");
                        assert_eq!(findings, expected, "{place}");
                    }
                    assert_eq!(kind == 0 || sanitize == Sanitize::OFF, findings.is_empty(), "{place}");
                    found += findings.len();
                }
            }
        }
    }
    assert!(found > 0);
}
