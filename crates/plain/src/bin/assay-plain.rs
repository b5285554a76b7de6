//! `assay-plain [PROBLEM...]`: runs the references of problems (all where none is named) as chains of plain kernels at
//! desk extents, one official input each, and prints how far each lies from float64. Exit code 1 where one lies above
//! the tolerance of 1e-2 or has a finding, or where its kernels fail.

use std::process::ExitCode;
use std::time::Instant;

use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand, worker_main};
use assay_plain::{PlainError, PlainRunner, Settings, check};
use assay_problems::{Extents, Recipe, Root, discover};

const TOLERANCE: f64 = 1e-2;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("__compile-worker") {
        std::process::exit(worker_main());
    }
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["__compile-worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |step| eprintln!("{step}"))?;
    let compiler = Compiler::new(install, worker, 1, Limits::default());
    let runner = PlainRunner::new(&compiler);
    // Kernels of one thread per row take many instructions where the rows are few.
    let settings = Settings { instructions: u64::MAX, ..Settings::default() };
    let mut wrong = false;
    println!(
        "{:<44} {:>8} {:>14} {:>8} {:>10} {:>10}",
        "problem", "launches", "warp instr", "s", "threshold", "float32"
    );
    for problem in discover(&args, &Root::locate())? {
        let dims = problem.dims_with(&Default::default(), Extents::Desk)?;
        let started = Instant::now();
        match check(&runner, &problem, &Recipe::official(42), &dims, &settings) {
            Ok(c) => {
                let findings = c.chain.findings.len();
                let bad = findings > 0 || !c.truth.passes(TOLERANCE);
                wrong |= bad;
                println!(
                    "{:<44} {:>8} {:>14} {:>8.2} {:>10.1e} {:>10.1e}{}",
                    problem.key(),
                    c.chain.launches,
                    c.chain.instructions,
                    started.elapsed().as_secs_f64(),
                    c.truth.threshold,
                    c.reference,
                    if bad { format!("  WRONG, {findings} findings") } else { String::new() }
                );
            }
            Err(e) => {
                wrong |= matches!(e, PlainError::Kernel { .. });
                println!("{:<44} {e}", problem.key());
            }
        }
    }
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
