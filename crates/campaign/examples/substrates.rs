//! Speed of the CPU device on every problem's substrate, at desk extents.
//!
//! `cargo run --release -p assay-campaign --example substrates -- [pattern…] [--emit DIR]`
//!
//! Compiles each substrate with NVRTC, runs one evaluation (buffers, all launches, outputs read back) on the first
//! official input without detectors and with all of them, checks the outputs against the reference, and prints
//! warp-instructions per second and nanoseconds per element (of the outputs), with the median and the worst, and what an
//! evaluation costs in milliseconds: median, mean, the worst and how many are above 8, 20 and 400 ms. Times are processor
//! time of this thread, the best of several. `--emit` writes the PTX and the device code as files.

use assay_campaign::execute::{Buffer, End, Executable, Mode, execute};
use assay_campaign::{filter, inputs};
use assay_measure::Origin;
use assay_nvrtc::{Compiler, Install, Limits, Unit, WorkerCommand, worker_main};
use assay_problems::{HostProgram, InputKind, Operators, Plan, Problem, Recipe, Root, discover};
use assay_simt::{Engine, Fill, Memory, Role, Sanitize, Schedule};
use assay_tensor::DType;

/// Seconds of processor time of this thread: other work on the machine does not count.
fn now() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec, which the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// An evaluation that can be repeated.
struct Case<'a> {
    exe: &'a Executable,
    plan: &'a Plan,
    buffers: Vec<Buffer<'a>>,
    outputs: Vec<(String, DType, Vec<u64>)>,
}

fn case<'a>(
    problem: &'a Problem,
    exe: &'a Executable,
    plan: &'a Plan,
    input: &'a inputs::Input,
) -> Result<Case<'a>, String> {
    let mut buffers = Vec::new();
    for i in &problem.inputs {
        let t = input.tensors.get(&i.name).ok_or_else(|| format!("no tensor `{}`", i.name))?;
        buffers.push(Buffer {
            name: &i.name,
            role: if i.kind == InputKind::Parameter { Role::Parameter } else { Role::Input },
            dtype: t.dtype,
            size_bytes: t.data.len() as u64,
            official_bytes: t.data.len() as u64,
            values: Some(&t.data),
            previous: None,
            may_write: problem.inplace.contains(&i.name),
        });
    }
    let mut fresh = |name: &'a str, role, dtype, size_bytes| {
        buffers.push(Buffer {
            name,
            role,
            dtype,
            size_bytes,
            official_bytes: size_bytes,
            values: None,
            previous: None,
            may_write: true,
        });
    };
    for s in &plan.scratch {
        fresh(&s.name, Role::Scratch, s.dtype, s.len * s.dtype.size_bytes());
    }
    let mut outputs = Vec::new();
    for name in &problem.outputs {
        let t = input.official.get(name).ok_or_else(|| format!("no reference for `{name}`"))?;
        outputs.push((name.clone(), t.dtype, t.shape.clone()));
        if problem.input(name).is_none() {
            fresh(name, Role::Output, t.dtype, t.data.len() as u64);
        }
    }
    Ok(Case { exe, plan, buffers, outputs })
}

/// Seconds of the shortest run, warp instructions, and how it ended.
fn measure(case: &Case<'_>, sanitize: Sanitize) -> Result<(f64, u64, inputs::Tensors), String> {
    let mode = Mode {
        memory: Memory::Strict,
        fill: Fill::Noise,
        sanitize,
        schedule: Schedule::Hardware,
        seed: 0,
        instructions: u64::MAX,
        engine: Engine::Auto,
    };
    let (mut best, mut total, mut last) = (f64::MAX, 0.0, None);
    while total < 0.3 {
        let started = now();
        let run = execute(case.exe, case.plan, &case.buffers, &case.outputs, &mode);
        let t = now() - started;
        best = best.min(t);
        total += t.max(1e-6);
        last = Some(run);
    }
    let run = last.ok_or("nothing ran")?;
    if let Some(f) = run.findings.first() {
        return Err(f.message.clone());
    }
    match run.end {
        End::Outputs(t) => Ok((best, run.instructions, t)),
        other => Err(format!("{other:?}")),
    }
}

/// One line of the table.
struct Line {
    name: String,
    elements: u64,
    instructions: u64,
    plain: f64,
    sanitized: f64,
}

impl Line {
    fn rate(&self, seconds: f64) -> f64 {
        self.instructions as f64 / seconds / 1e6
    }

    fn each(&self, seconds: f64) -> f64 {
        seconds * 1e9 / self.elements as f64
    }
}

/// Writes PTX, device code and what the launcher does at desk extents.
fn emit_files(dir: &str, problem: &Problem, compiler: &Compiler, plan: &Plan) -> Result<(), String> {
    let base = format!("{dir}/{}", problem.key().replace('/', "_"));
    let host = HostProgram::parse(&problem.kernel_source).map_err(|e| e.to_string())?;
    let unit = Unit {
        name: "whole".into(),
        file: "kernel.cu".into(),
        source: host.device_source(),
        kernels: host.kernels().to_vec(),
    };
    let images = compiler.compile(&assay_nvrtc::Options::default(), std::slice::from_ref(&unit));
    let image = images.into_iter().next().ok_or("no image")?.map_err(|e| e.to_string())?;
    for (ending, text) in [("ptx", &*image.ptx), ("cu", &unit.source), ("launch", &plan.trace())] {
        std::fs::write(format!("{base}.{ending}"), text).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn one(problem: &Problem, compiler: &Compiler, emit: Option<&str>) -> Result<Line, String> {
    let text = |e: assay_campaign::CampaignError| e.to_string();
    let input =
        inputs::prepare(&Operators, problem, &Recipe::official(0), Origin::Official, false).map_err(text)?;
    let shapes = vec![("desk".to_owned(), input.dims.clone())];
    let options = assay_nvrtc::Options::default();
    let version = filter::compiled(problem, compiler, &options, "kernel.cu", &problem.kernel_source, &shapes)
        .map_err(text)?;
    let exe = version.exe.as_ref().ok_or("nothing was compiled")?;
    let plan = version.plans.get("desk").ok_or("no plan")?.as_ref().map_err(ToString::to_string)?;
    if let Some(dir) = emit {
        emit_files(dir, problem, compiler, plan)?;
    }
    let case = case(problem, exe, plan, &input)?;
    let (plain, instructions, out) = measure(&case, Sanitize::OFF)?;
    let worst = inputs::worst(problem, &out, &input.official, false)?;
    if worst.threshold > 1e-2 {
        return Err(format!("wrong by {:e}", worst.threshold));
    }
    let (sanitized, ..) = measure(&case, Sanitize::ALL)?;
    let elements = case.outputs.iter().map(|(_, _, shape)| shape.iter().product::<u64>()).sum::<u64>();
    let read = input.tensors.values().map(|t| t.shape.iter().product::<u64>()).sum::<u64>();
    // A reduction's cost is its input's.
    let elements = elements.max(read).max(1);
    Ok(Line { name: problem.key(), elements, instructions, plain, sanitized })
}

/// Bounds that desk extents are cut to: median, mean and worst evaluation, in milliseconds.
const BUDGET_MS: [f64; 3] = [8.0, 20.0, 400.0];

/// What an evaluation costs over all substrates.
fn budget(what: &str, lines: &[Line], of: fn(&Line) -> f64) -> String {
    let ms: Vec<f64> = lines.iter().map(|l| of(l) * 1e3).collect();
    let mut slowest: Vec<&Line> = lines.iter().collect();
    slowest.sort_by(|a, b| of(b).total_cmp(&of(a)));
    let slowest: Vec<String> =
        slowest.iter().take(5).map(|l| format!("{} {:.0}", l.name, of(l) * 1e3)).collect();
    let above: Vec<String> =
        BUDGET_MS.iter().map(|b| format!("{} above {b} ms", ms.iter().filter(|v| *v > b).count())).collect();
    format!(
        "{what}: ms an evaluation: median {:.1}, mean {:.1}, worst {:.1}; {}; slowest: {}",
        median(ms.clone()),
        ms.iter().sum::<f64>() / ms.len().max(1) as f64,
        ms.iter().copied().fold(0.0, f64::max),
        above.join(", "),
        slowest.join(", ")
    )
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    let n = v.len();
    if n == 0 { f64::NAN } else { (v[(n - 1) / 2] + v[n / 2]) / 2.0 }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("worker") {
        std::process::exit(worker_main());
    }
    let mut emit = None;
    if let Some(k) = args.iter().position(|a| a == "--emit") {
        emit = args.drain(k..).nth(1);
    }
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |step| eprintln!("{step}"))?;
    let compiler = Compiler::new(install, worker, 1, Limits::default());
    let mut lines = Vec::new();
    println!(
        "{:<44} {:>10} {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}",
        "problem", "warp instr", "ms", "M/s", "ns/elem", "ms", "M/s", "ns/elem"
    );
    for problem in discover(&args, &Root::locate())? {
        match one(&problem, &compiler, emit.as_deref()) {
            Ok(l) => {
                println!(
                    "{:<44} {:>10} {:>8.2} {:>8.0} {:>8.1}   {:>8.2} {:>8.0} {:>8.1}",
                    l.name,
                    l.instructions,
                    l.plain * 1e3,
                    l.rate(l.plain),
                    l.each(l.plain),
                    l.sanitized * 1e3,
                    l.rate(l.sanitized),
                    l.each(l.sanitized)
                );
                lines.push(l);
            }
            Err(e) => println!("{:<44} {e}", problem.key()),
        }
    }
    println!("{}", budget("plain", &lines, |l| l.plain));
    println!("{}", budget("sanitized", &lines, |l| l.sanitized));
    for (what, of) in [("plain", (|l: &Line| l.plain) as fn(&Line) -> f64), ("sanitized", |l| l.sanitized)] {
        let rates: Vec<f64> = lines.iter().map(|l| l.rate(of(l))).collect();
        let each: Vec<f64> = lines.iter().map(|l| l.each(of(l))).collect();
        println!(
            "{what}: {} substrates, warp-instructions/s median {:.0} M, worst {:.0} M; ns an element median {:.1}, worst {:.1}",
            lines.len(),
            median(rates.clone()),
            rates.iter().copied().fold(f64::INFINITY, f64::min),
            median(each.clone()),
            each.iter().copied().fold(0.0, f64::max)
        );
    }
    Ok(())
}
