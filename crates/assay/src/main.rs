//! The command `assay`: arguments in, calls out, no logic of its own.

#[cfg(feature = "device")]
mod argspec;
#[cfg(feature = "device")]
mod blockspec;
mod cli;
mod cli_sweep;
mod commands;
#[cfg(feature = "device")]
mod diagnostic;
#[cfg_attr(not(feature = "device"), allow(dead_code, reason = "the sweeps end in fewer ways"))]
mod exit;
mod output;
mod progress;

use clap::Parser as _;

use cli::{Cli, Command};
use exit::{Exit, Failure};

fn main() {
    std::process::exit(real_main() as i32);
}

fn real_main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version go to stdout and are fine; anything else is usage. A closed pipe changes neither.
            let _ = e.print();
            return if e.use_stderr() { Exit::BadInput } else { Exit::Fine };
        }
    };
    #[cfg(feature = "device")]
    if matches!(cli.command, Command::CompileWorker) {
        return if assay_nvrtc::worker_main() == 0 { Exit::Fine } else { Exit::Bug };
    }
    if matches!(cli.command, Command::SweepWorker) {
        return if assay_sweep::serve::emulated_worker() == 0 { Exit::Fine } else { Exit::Bug };
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commands::dispatch(&cli)));
    match result {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            report(&failure);
            failure.exit
        }
        Err(_) => {
            report(&Failure::bug(
                "Assay stopped at a fault of its own (above); please report it with the command line",
            ));
            Exit::Bug
        }
    }
}

fn report(failure: &Failure) {
    output::say(format_args!("error: {}", failure.message.trim_end()));
}
