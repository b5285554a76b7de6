//! Every arithmetic instruction of the ISA table, run on the device over edge values and random bits, against oracles
//! that share no code with it: `rustc_apfloat` for rounding, 128-bit integers, the pseudocode of the PTX manual.
//!
//! Spellings are expanded from the table, so an opcode or a form that is new there has to have an oracle here, or to be
//! named with a reason in [`table::elsewhere`] or [`table::refused`].

mod approx;
mod cases;
mod cvt;
mod device;
mod float;
mod int;
mod matrix;
mod table;
mod vectors;

use std::collections::BTreeSet;

use device::Program;
use table::Spelling;

/// What an instruction has to give: bits of the result and of a second one; `None` where the manual leaves it open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Want {
    first: Option<u64>,
    second: Option<u64>,
}

impl Want {
    fn bits(v: u64) -> Want {
        Want { first: Some(v), second: None }
    }
}

/// The expected results of an instruction for the bits of its source operands.
pub type Oracle = Box<dyn Fn(&[u64]) -> Want>;

fn oracle(s: &Spelling) -> Option<Oracle> {
    float::oracle(s).or_else(|| cvt::oracle(s)).or_else(|| int::oracle(s))
}

/// Runs `spellings` on the device and compares; gives what is wrong.
fn compare(
    spellings: &[Spelling],
    seen: &mut BTreeSet<(&'static str, &'static str)>,
    faults: &mut Vec<String>,
) -> usize {
    let mut programs = Vec::new();
    let mut oracles = Vec::new();
    for s in spellings {
        let Some(o) = oracle(s) else {
            faults.push(format!("no oracle for `{}`", s.text));
            continue;
        };
        // 1,024 vectors for an opcode and its first type, fewer for further spellings.
        let threads = if seen.insert((s.name(), s.ty(0))) { 1024 } else { 256 };
        let Some(program) = Program::of(s, threads) else {
            faults.push(format!("no program for `{}` ({:?})", s.text, s.operands));
            continue;
        };
        programs.push(program);
        oracles.push((s, o));
    }
    let results = device::run(&programs);
    for ((program, result), (s, o)) in programs.iter().zip(results).zip(&oracles) {
        let result = match result {
            Ok(r) => r,
            Err(e) => {
                faults.push(format!("`{}`: {e}", s.text));
                continue;
            }
        };
        let mut wrong = 0;
        let threads = program.threads();
        for t in 0..threads {
            let v = program.vector(t);
            let want = o(v);
            let got = [result[t], result[threads + t]];
            let off = |w: Option<u64>, g: u64| w.is_some_and(|w| w != g);
            if off(want.first, got[0]) || (program.outputs > 1 && off(want.second, got[1])) {
                wrong += 1;
                if wrong <= 2 {
                    faults.push(format!("`{}` of {v:x?}: got {got:x?}, want {want:x?}", s.text));
                }
            }
        }
        if wrong > 2 {
            faults.push(format!("`{}`: {wrong} of {threads} vectors are wrong", s.text));
        }
    }
    oracles.len()
}

#[test]
fn arithmetic_agrees_with_the_oracles() {
    let all = table::spellings();
    let (mut faults, mut count, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for chunk in all.chunks(100) {
        count += compare(chunk, &mut seen, &mut faults);
    }
    println!("{count} spellings");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(count > 1500, "only {count} spellings");
}

#[test]
fn forms_without_semantics_are_refused() {
    let list = table::refused_spellings();
    let programs: Vec<Program> = list
        .iter()
        .map(|s| Program::of(s, 1).unwrap_or_else(|| panic!("no program for `{}`", s.text)))
        .collect();
    for (s, result) in list.iter().zip(device::run(&programs)) {
        assert!(matches!(&result, Err(e) if e.contains("not supported")), "`{}`: {result:?}", s.text);
    }
}

/// The other tests of this file, with the handlers that every processor can run.
#[test]
fn the_portable_variant_agrees_as_well() {
    if std::env::var_os("ASSAY_SIMD").is_some() {
        return;
    }
    let out = std::process::Command::new(std::env::current_exe().expect("this test's own binary"))
        .env("ASSAY_SIMD", "portable")
        .output()
        .expect("this test's own binary runs");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}");
}
