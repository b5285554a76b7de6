//! The blind band against the length of a reduction: table on standard output, points as JSON.
//!
//! `cargo run --release -p assay-campaign --example bands -- [--json FILE] [--most LENGTH]`

use assay_campaign::bands::{CURVE, LENGTHS, blind_point};
use assay_measure::BlindCurve;
use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand, worker_main};
use assay_problems::{Root, discover};

const COMMAND: &str =
    "cargo run --release -p assay-campaign --example bands -- --json docs/results/blind-band.json";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (mut json, mut most) = (None, u64::MAX);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "worker" => std::process::exit(worker_main()),
            "--json" => json = args.next(),
            "--most" => most = args.next().unwrap_or_default().parse()?,
            other => return Err(format!("unknown argument `{other}`").into()),
        }
    }
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |step| eprintln!("{step}"))?;
    let compiler = Compiler::new(install, worker, 1, Limits::default());
    let problems = discover::<&str>(&[], &Root::locate())?;
    let mut points = Vec::new();
    println!("| operator | length | max abs ref | blind band | largest error accepted | zeros pass |");
    println!("|---|---|---|---|---|---|");
    for case in CURVE {
        let problem = problems.iter().find(|p| p.key() == case.problem);
        let problem = problem.ok_or_else(|| format!("no problem {}", case.problem))?;
        for &length in LENGTHS.iter().filter(|&&l| l <= most) {
            match blind_point(case, problem, length, &compiler) {
                Ok(p) => {
                    let zeros = if p.zeros_pass { "yes" } else { "no" };
                    println!(
                        "| {} | {length} | {:.3e} | {:.3e} | {:.3e} | {zeros} |",
                        p.operator, p.max_abs_reference, p.band, p.accepted_error
                    );
                    points.push(p);
                }
                Err(e) => eprintln!("left out: {e}"),
            }
        }
    }
    if let Some(path) = json {
        let tolerance = assay_judge::PAPER_TOLERANCE;
        let curve = BlindCurve { command: COMMAND.to_owned(), tolerance, points };
        let mut text = serde_json::to_string_pretty(&curve)?;
        text.push('\n');
        std::fs::write(path, text)?;
    }
    Ok(())
}
