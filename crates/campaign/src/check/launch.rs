//! A file's own `launch` on given tensors, with every detector: no problem, no reference.

use std::time::Instant;

use assay_nvrtc::{CompileErrorKind, Compiler, Unit};
use assay_problems::{Bindings, HostError, HostProgram, ParameterKind, Plan, PlanOp};
use assay_simt::{Engine, Fill, Finding, Memory, Role, Sanitize, Schedule};
use assay_tensor::Tensor;

use super::checker::misfit;
use super::verdict::{counted, is_crash, kinds};
use super::{Outputs, Verdict};
use crate::CampaignError;
use crate::execute::{Buffer, End, Mode, execute};
use crate::filter::{self, Refused};

/// The value of a parameter of `launch`.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchValue {
    /// A buffer; `fresh` if nothing has been written to it yet, so that the file is expected to.
    Tensor {
        /// Its values.
        tensor: Tensor,
        /// See above.
        fresh: bool,
    },
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

/// A parameter of `launch` by name.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchArg {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: LaunchValue,
}

/// What a `launch` did.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRun {
    /// `correct` means that no detector reported anything.
    pub verdict: Verdict,
    /// Why, in one line.
    pub reason: String,
    /// What the detectors saw.
    pub findings: Vec<Finding>,
    /// Every buffer afterwards; empty where the run did not come to its end.
    pub outputs: Outputs,
    /// Text that kernels printed.
    pub printf: Vec<String>,
    /// The compiler's log, where it refused the file.
    pub log: Option<String>,
    /// Launches of kernels.
    pub launches: u64,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Time spent executing.
    pub seconds: f64,
}

impl LaunchRun {
    fn early(verdict: Verdict, reason: String) -> LaunchRun {
        LaunchRun {
            verdict,
            reason,
            findings: Vec::new(),
            outputs: Outputs::new(),
            printf: Vec::new(),
            log: None,
            launches: 0,
            instructions: 0,
            seconds: 0.0,
        }
    }
}

/// Runs the `launch` of a file on these values, in strict memory with every detector. A tensor that `launch` takes as a
/// pointer to const is an input: a store to it is `input_modified`. `name` is what messages call the file.
///
/// # Errors
/// `Input` where a parameter has no value or a value no parameter; `Internal` where the compiler is missing.
pub fn run_launch(
    source: &str,
    name: &str,
    args: &[LaunchArg],
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    schedule: Schedule,
    seed: u64,
) -> Result<LaunchRun, CampaignError> {
    let host = match HostProgram::parse(source) {
        Ok(host) => host,
        Err(HostError::NoLaunch) => {
            return Ok(LaunchRun::early(
                Verdict::Rejected,
                format!(
                    "{name}: the file has no host function `launch`; to run one kernel: \
                     assay run {name} --sanitize --kernel K --grid X --block X --arg SPEC…"
                ),
            ));
        }
        Err(e) => return Ok(host_error(name, &e)),
    };
    let bindings = bind(&host, name, args)?;
    let plan = match host.plan(&bindings) {
        Ok(plan) => plan,
        Err(e @ HostError::Unbound { .. }) => return Err(CampaignError::Input(format!("{name}:{e}"))),
        Err(e) => return Ok(host_error(name, &e)),
    };
    let unit = Unit {
        name: "launch".into(),
        file: name.into(),
        source: host.device_source(),
        kernels: host.kernels().to_vec(),
    };
    let exe = match filter::executable(compiler, options, &unit) {
        Ok((_, exe)) => exe,
        Err(Refused::Host(e)) => return Ok(host_error(name, &e)),
        Err(Refused::Device(what)) => {
            return Ok(LaunchRun::early(Verdict::Unsupported, format!("{name}: {what}")));
        }
        Err(Refused::Lost) => return Err(CampaignError::Internal("the compiler gave no answer".into())),
        Err(Refused::Compile(e)) => {
            let verdict = match e.kind {
                CompileErrorKind::Rejected => Verdict::Rejected,
                CompileErrorKind::TimedOut | CompileErrorKind::Crashed => Verdict::Exhausted,
                CompileErrorKind::Options => return Err(CampaignError::Input(e.to_string())),
                CompileErrorKind::Unavailable => return Err(CampaignError::Internal(e.to_string())),
            };
            let mut run = LaunchRun::early(verdict, format!("{name}: does not compile: {e}"));
            run.log = Some(e.log);
            return Ok(run);
        }
    };
    if let Some(what) = misfit(&exe, &plan) {
        return Ok(LaunchRun::early(Verdict::Rejected, format!("{name}:{what}")));
    }

    let mut buffers = Vec::new();
    let mut wanted = Vec::new();
    for a in args {
        let LaunchValue::Tensor { tensor, fresh } = &a.value else { continue };
        let is_const = host
            .parameters()
            .iter()
            .any(|p| p.name == a.name && matches!(p.kind, ParameterKind::Pointer { is_const: true, .. }));
        let role = match (is_const, fresh) {
            (true, false) => Role::Input,
            (_, true) => Role::Output,
            (false, false) => Role::Scratch,
        };
        buffers.push(Buffer {
            name: &a.name,
            role,
            dtype: tensor.dtype,
            size_bytes: tensor.data.len() as u64,
            official_bytes: tensor.data.len() as u64,
            values: (!fresh).then_some(tensor.data.as_slice()),
            previous: None,
            may_write: false,
        });
        wanted.push((a.name.clone(), tensor.dtype, tensor.shape.clone()));
    }
    for s in &plan.scratch {
        let Some(size) = s.len.checked_mul(s.dtype.size_bytes()) else {
            return Ok(LaunchRun::early(Verdict::Exhausted, format!("scratch `{}` is too large", s.name)));
        };
        buffers.push(Buffer {
            name: &s.name,
            role: Role::Scratch,
            dtype: s.dtype,
            size_bytes: size,
            official_bytes: size,
            values: None,
            previous: None,
            may_write: true,
        });
    }
    let bytes = buffers.iter().fold(0u64, |sum, b| sum.saturating_add(b.size_bytes));
    let mode = Mode {
        memory: Memory::Strict,
        fill: Fill::Noise,
        sanitize: Sanitize::ALL,
        schedule,
        seed,
        instructions: budget(&plan, bytes),
        engine: Engine::Auto,
    };
    let started = Instant::now();
    let run = execute(&exe, &plan, &buffers, &wanted, &mode);
    let seconds = started.elapsed().as_secs_f64();
    let launches = plan.launches().count();
    let (verdict, reason) = match &run.end {
        End::Unsupported(why) => (Verdict::Unsupported, why.clone()),
        End::Exhausted(why) if run.findings.is_empty() => (Verdict::Exhausted, why.clone()),
        End::Fault(why) if run.findings.is_empty() => (Verdict::Crashed, why.clone()),
        End::Outputs(_) | End::Fault(_) | End::Exhausted(_) => {
            if let Some(f) = run.findings.iter().find(|f| is_crash(f.kind)) {
                (Verdict::Crashed, f.message.clone())
            } else if run.findings.is_empty() {
                (Verdict::Correct, format!("no findings in {}", counted(launches, "launch", "launches")))
            } else {
                let what = kinds(run.findings.iter());
                (Verdict::UndefinedBehaviour, format!("the detectors report {what}"))
            }
        }
    };
    Ok(LaunchRun {
        verdict,
        reason,
        findings: run.findings,
        outputs: if let End::Outputs(o) = run.end { o } else { Outputs::new() },
        printf: run.printf,
        log: None,
        launches: launches as u64,
        instructions: run.instructions,
        seconds,
    })
}

fn host_error(name: &str, e: &HostError) -> LaunchRun {
    let verdict = match e {
        HostError::Unsupported { .. } => Verdict::Unsupported,
        HostError::Exhausted { .. } => Verdict::Exhausted,
        HostError::Fault { .. } => Verdict::Crashed,
        HostError::NoLaunch | HostError::Invalid { .. } | HostError::Unbound { .. } => Verdict::Rejected,
    };
    LaunchRun::early(verdict, format!("{name}:{e}"))
}

/// The values by name, as the launcher's interpreter takes them.
fn bind(host: &HostProgram, name: &str, args: &[LaunchArg]) -> Result<Bindings, CampaignError> {
    let takes: Vec<String> = host
        .parameters()
        .iter()
        .filter(|p| p.kind != ParameterKind::Stream)
        .map(|p| match &p.kind {
            ParameterKind::Pointer { element, is_const, .. } => {
                format!("`{}{element}* {}`", if *is_const { "const " } else { "" }, p.name)
            }
            ParameterKind::Integer => format!("`{}` (an integer)", p.name),
            ParameterKind::Float => format!("`{}` (a float)", p.name),
            ParameterKind::Stream => p.name.clone(),
        })
        .collect();
    let takes = format!("`launch` in {name} takes {}", takes.join(", "));
    let mut b = Bindings::default();
    for a in args {
        if !host.parameters().iter().any(|p| p.name == a.name) {
            return Err(CampaignError::Input(format!(
                "--arg `{}` is no parameter of `launch`; {takes}",
                a.name
            )));
        }
        match &a.value {
            LaunchValue::Tensor { tensor, .. } => {
                b.buffers.insert(a.name.clone(), Some(tensor.dtype));
            }
            LaunchValue::Int(v) => {
                b.ints.insert(a.name.clone(), *v);
                b.floats.insert(a.name.clone(), *v as f64);
            }
            LaunchValue::Float(v) => {
                b.floats.insert(a.name.clone(), *v);
            }
        }
    }
    for p in host.parameters() {
        if p.kind != ParameterKind::Stream && args.iter().all(|a| a.name != p.name) {
            return Err(CampaignError::Input(format!("parameter `{}` has no --arg; {takes}", p.name)));
        }
    }
    Ok(b)
}

/// Warp instructions that a plan may execute: a fixed part, and more for every warp and byte.
fn budget(plan: &Plan, bytes: u64) -> u64 {
    const FIXED: u64 = 100_000_000;
    const PER_WARP: u64 = 1_000_000;
    const PER_BYTE: u64 = 16;
    let product = |d: [u64; 3]| d.into_iter().fold(1u64, u64::saturating_mul);
    let warps = plan.ops.iter().fold(0u64, |sum, op| match op {
        PlanOp::Launch(l) => {
            sum.saturating_add(product(l.block).div_ceil(32).saturating_mul(product(l.grid)))
        }
        PlanOp::Memset { .. } => sum,
    });
    FIXED.saturating_add(warps.saturating_mul(PER_WARP)).saturating_add(bytes.saturating_mul(PER_BYTE))
}
