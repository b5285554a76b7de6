//! One file per command.

#[cfg(feature = "device")]
mod audit;
#[cfg(feature = "device")]
mod blindspots;
#[cfg(feature = "device")]
mod ceilings;
#[cfg(feature = "device")]
mod check;
mod compare;
#[cfg(feature = "device")]
mod doctor;
#[cfg(feature = "device")]
mod export;
#[cfg(feature = "device")]
mod kernelbench;
#[cfg(feature = "device")]
mod ladder;
#[cfg(feature = "device")]
mod list;
#[cfg(feature = "device")]
mod problems;
#[cfg(feature = "device")]
mod report;
#[cfg(feature = "device")]
mod run;
#[cfg(feature = "device")]
mod sparse;
#[cfg(feature = "device")]
mod submission;
#[cfg(feature = "device")]
mod substrates;
mod sweep;
#[cfg(feature = "device")]
mod sweep_kernel;
#[cfg(feature = "device")]
mod tools;
#[cfg(feature = "device")]
mod verify_ops;

use std::path::PathBuf;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

/// Runs the command.
///
/// # Errors
/// `Failure` with the exit code and what to tell the user.
pub fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Sweep(args) => sweep::sweep(&cli.common, args),
        Command::Rules(args) => sweep::rules(&cli.common, args),
        Command::Compare(args) => compare::compare(&cli.common, args),
        Command::GuardEval(args) => sweep::guard_eval(&cli.common, args),
        Command::CompileWorker | Command::SweepWorker => Err(Failure::bug("workers are dispatched earlier")),
        #[cfg(feature = "device")]
        command => on_the_device(&cli.common, command),
        #[cfg(not(feature = "device"))]
        _ => Err(Failure::unsupported(
            "this build has no CPU device: it was made with --no-default-features; sweep, rules, compare and guard-eval are \
             what it has",
        )),
    }
}

/// The commands that need the CPU device or NVRTC.
#[cfg(feature = "device")]
fn on_the_device(common: &crate::cli::Common, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Audit(args) => audit::audit(common, args),
        Command::Mutate(args) => list::mutate(common, args),
        Command::Mutators => list::mutators(common),
        Command::Problems(args) => problems::problems(common, args),
        Command::Protocols => list::protocols(common),
        Command::Run(args) => run::run(common, args),
        Command::Suite(args) => report::suite(common, args),
        Command::Ladder(args) => ladder::ladder(common, args),
        Command::Export(args) => export::export(common, args),
        Command::Report(args) => report::report(common, args),
        Command::Doctor => doctor::doctor(common),
        Command::Check(args) => check::check(common, args),
        Command::VerifyOps(args) => verify_ops::verify_ops(common, args),
        Command::Blindspots(args) => blindspots::blindspots(common, args),
        _ => Err(Failure::bug("a command that nobody runs")),
    }
}

/// `assay-runs/KIND-DATE-TIME` in UTC.
pub fn default_folder(kind: &str) -> PathBuf {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970-01-01 (proleptic Gregorian calendar, eras of 400 years).
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + u64::from(month <= 2);
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    PathBuf::from("assay-runs").join(format!("{kind}-{year:04}{month:02}{day:02}-{h:02}{m:02}{s:02}"))
}
