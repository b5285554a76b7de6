//! One file per command.

mod audit;
mod check;
mod compare;
mod doctor;
mod list;
mod problems;
mod report;
mod run;
mod sparse;
mod sweep;
mod tools;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

/// Runs the command.
///
/// # Errors
/// `Failure` with the exit code and what to tell the user.
pub fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Audit(args) => audit::audit(&cli.common, args),
        Command::Mutate(args) => list::mutate(&cli.common, args),
        Command::Mutators => list::mutators(&cli.common),
        Command::Problems(args) => problems::problems(&cli.common, args),
        Command::Protocols => list::protocols(&cli.common),
        Command::Run(args) => run::run(&cli.common, args),
        Command::Suite(args) => report::suite(&cli.common, args),
        Command::Report(args) => report::report(&cli.common, args),
        Command::Doctor => doctor::doctor(&cli.common),
        Command::Check(args) => check::check(&cli.common, args),
        Command::Export(_) => not_yet("export"),
        Command::Sweep(args) => sweep::sweep(&cli.common, args),
        Command::Rules(args) => sweep::rules(&cli.common, args),
        Command::Compare(args) => compare::compare(&cli.common, args),
        Command::GuardEval(args) => sweep::guard_eval(&cli.common, args),
        Command::VerifyOps(_) => not_yet("verify-ops"),
        Command::Blindspots(_) => not_yet("blindspots"),
        Command::CompileWorker | Command::SweepWorker => Err(Failure::bug("workers are dispatched earlier")),
    }
}

fn not_yet(command: &str) -> Result<Exit, Failure> {
    Err(Failure::unsupported(format!(
        "`assay {command}` is not part of this version; `assay --help` lists what is, CHANGELOG.md what is planned"
    )))
}
