//! Random programs as seeded tests. A short share always; `ASSAY_FUZZ_SECONDS` for more, `ASSAY_FUZZ_SEED` to begin
//! elsewhere or to replay.

use assay_fuzzing::exec;
use assay_fuzzing::seeded::{Amount, outcome, random, run};

/// Choices of a program of some size.
fn bytes(target: &str, case: u64) -> Vec<u8> {
    let mut r = random(target, case);
    let len = 40 + (r.word() % 600) as usize;
    r.bytes(len)
}

#[test]
fn random_programs_give_the_same_on_every_path() {
    let fails = |p: &assay_fuzzing::Program| outcome(|| exec::check(p)).err();
    let done = run(
        "ptx_exec",
        Amount::share(250, 60),
        |n| exec::ptx_exec(&bytes("ptx_exec", n)),
        |n, _| {
            let (small, why) = exec::shrink(exec::program(&bytes("ptx_exec", n)), fails);
            format!("{why}\n(shrunk to {} statements)", small.len())
        },
    );
    println!("{done} programs");
}
