//! `assay sweep OP --backend kernel:FILE.cu`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_campaign::Progress as _;
use assay_kernel_sweep::drive::Ended;
use assay_kernel_sweep::{Kernel, KernelError, Op, Request, sweep as run_sweep, text};
use assay_problems::HostError;
use assay_sweep::record::Record;

use crate::cli::Common;
use crate::cli_sweep::SweepArgs;
use crate::commands::{list, sweep, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Sweeps the kernel in a file: 0 where every size is right, 1 where one is not, 3 where the small size is not.
///
/// # Errors
/// Bad input, what is not supported, an unwritable folder, an interrupt.
pub fn sweep(common: &Common, args: &SweepArgs, file: &str) -> Result<Exit, Failure> {
    let names = Op::ALL.map(Op::name).join(", ");
    let op = Op::parse(&args.op).ok_or_else(|| {
        Failure::unsupported(format!("a kernel is swept as one of {names}, not as `{}`", args.op))
    })?;
    refuse_options(args)?;
    let path = Path::new(file);
    let source = list::read_kernel(path)?.text;
    let bar = Bar::new(common.quiet || common.json);
    let compiler = tools::compiler(&bar, 1)?;
    let kernel = Kernel::new(path, &source, op, &compiler).map_err(|e| refused(path, &e))?;
    if let Some(other) = args.dtype.iter().find(|d| assay_sweep::condition::dtype(d) != Some(kernel.dtype)) {
        return Err(Failure::bad_input(format!(
            "--dtype {other}: the parameters of `launch` in `{file}` are {}",
            kernel.dtype
        )));
    }
    let out = args.out.clone().unwrap_or_else(|| super::default_folder("sweep"));
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // A second handler in one process cannot happen: this is the only command that runs.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    bar.stage(&format!("{} by {}", op.name(), kernel.file), 0);
    let progress = |done: usize, planned: usize, r: &Record| {
        bar.at(done as u64, planned as u64);
        bar.note(&format!("{} {} {} {}", r.shape_id, r.dtype, r.b, r.cls));
    };
    let summary = run_sweep(&Request {
        kernel: &kernel,
        backend: &args.backend,
        boundaries: &args.boundary,
        shapes: &args.shapes,
        out: &out,
        resume: args.resume,
        jobs: tools::jobs(common),
        seed: common.seed,
        interrupted: &interrupted,
        progress: &progress,
    });
    bar.finish();
    let summary = summary.map_err(|e| match e {
        Ended::Sweep(e) => sweep::failure(e),
        Ended::Baseline(message) => Failure { exit: Exit::BaselineFailed, message },
    })?;
    if common.json {
        output::json(&summary)?;
    } else {
        output::text(&text::summary(&summary, output::width()))?;
        if !common.quiet {
            output::say(format_args!("records and summary: {}", out.display()));
        }
    }
    Ok(match (summary.right(), summary.skipped()) {
        (false, _) => Exit::Wrong,
        (true, 0) => Exit::Fine,
        (true, _) => Exit::Unsupported,
    })
}

/// Options of other backends.
fn refuse_options(args: &SweepArgs) -> Result<(), Failure> {
    let refused = [
        (args.plan.is_some(), "--plan"),
        (!args.torch.is_empty(), "--torch"),
        (args.layout.iter().any(|l| l != "contig"), "--layout"),
        (args.full, "--full"),
        (args.repro, "--repro"),
    ];
    match refused.iter().find(|r| r.0) {
        Some((_, name)) => Err(Failure::unsupported(format!("{name} is not for the backend `kernel`"))),
        None => Ok(()),
    }
}

fn refused(path: &Path, e: &KernelError) -> Failure {
    let message = format!("`{}`: {e}", path.display());
    match e {
        KernelError::Compile(e) => tools::refused(path, e),
        KernelError::Host(HostError::Unsupported { .. })
        | KernelError::Ptx(assay_ptx::PtxError::Unsupported { .. })
        | KernelError::Load(assay_simt::LoadError::Unsupported { .. })
        | KernelError::Unsupported(_) => Failure::unsupported(message),
        KernelError::Host(HostError::Exhausted { .. }) => Failure { exit: Exit::Exhausted, message },
        KernelError::Host(_) | KernelError::Ptx(_) | KernelError::Load(_) | KernelError::Signature(_) => {
            Failure::bad_input(message)
        }
    }
}
