//! What the filter costs: milliseconds to compile, identify and load a mutant, over every substrate.
//!
//! `cargo run --release -p assay-campaign --example filter -- [pattern…] [--each N] [--jobs N] [--lines]`
//!
//! Of each problem `N` mutants are taken (16 unless said; 0 takes all), evenly over the list, so that the sample is the
//! same on every machine, and sorted as an audit sorts them, launchers traced at the audit's shapes. A problem's time over
//! its mutants counts for each of them; printed are median, mean and worst, as wall time and as processor time of this
//! process and its workers divided by the jobs (which other work on the machine does not lengthen as much). The last line is a digest of
//! where every mutant went and of its identity: two versions of the filter that agree print the same one.

use std::time::Instant;

use assay_campaign::filter::{self, Shapes, Sorted};
use assay_campaign::shape_name;
use assay_nvrtc::{Compiler, Install, Limits, Options, WorkerCommand, worker_main};
use assay_problems::{Extents, Problem, Recipe, Root, discover, search_recipes, targeted_recipes};
use sha2::{Digest, Sha256};

/// Seconds of processor time of this process and of its children, ended ones included.
fn processor() -> f64 {
    // SAFETY: `sysconf` reads a constant.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let of = |pid: &str, ended: bool| -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<f64> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().map(|w| w.parse().unwrap_or(0.0)).collect())
            .unwrap_or_default();
        let last = if ended { 15 } else { 13 };
        fields.get(11..last).map_or(0.0, |f| f.iter().sum::<f64>() / ticks)
    };
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children: Vec<String> = tasks
        .filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    of("self", true) + children.iter().map(|pid| of(pid, false)).sum::<f64>()
}

fn shapes_of(problem: &Problem) -> Result<Shapes, Box<dyn std::error::Error>> {
    let official = problem.dims_for(&Recipe::official(0), Extents::Official)?;
    let mut shapes: Shapes = vec![(shape_name(&official), official)];
    let targeted = targeted_recipes(problem).into_iter().map(|(recipe, _)| recipe);
    let recipes = std::iter::once(Recipe::official(0)).chain(targeted).chain(search_recipes(problem, 12));
    for recipe in recipes {
        let dims = problem.dims_for(&recipe, Extents::Desk)?;
        let name = shape_name(&dims);
        if shapes.iter().all(|(n, _)| *n != name) {
            shapes.push((name, dims));
        }
    }
    Ok(shapes)
}

/// One problem's part of the figures.
struct Line {
    mutants: usize,
    wall: f64,
    processor: f64,
}

fn summary(lines: &[Line], what: &str, of: impl Fn(&Line) -> f64) -> String {
    let mut each: Vec<f64> = lines
        .iter()
        .flat_map(|l| std::iter::repeat_n(of(l) * 1e3 / l.mutants.max(1) as f64, l.mutants))
        .collect();
    each.sort_by(f64::total_cmp);
    let total: f64 = each.iter().sum();
    let n = each.len().max(1);
    format!(
        "{what}: ms a mutant: median {:.1}, mean {:.1}, worst problem {:.1}",
        each.get(each.len() / 2).copied().unwrap_or(0.0),
        total / n as f64,
        each.last().copied().unwrap_or(0.0)
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("worker") {
        std::process::exit(worker_main());
    }
    let mut number = |name: &str, default: usize| -> Result<usize, Box<dyn std::error::Error>> {
        let Some(at) = args.iter().position(|a| a == name) else { return Ok(default) };
        let value = args.drain(at..(at + 2).min(args.len())).nth(1).unwrap_or_default();
        Ok(value.parse().map_err(|_| format!("`{name}` wants a number, not `{value}`"))?)
    };
    let (each, jobs) = (number("--each", 16)?, number("--jobs", 2)?.max(1));
    let verbose = args.iter().any(|a| a == "--lines");
    args.retain(|a| a != "--lines");
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |step| eprintln!("{step}"))?;
    let compiler = Compiler::new(install, worker, jobs, Limits::default());
    let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    let options = Options::default();
    let mut digest = Sha256::new();
    let mut lines = Vec::new();
    for problem in discover(&args, &Root::locate())? {
        let shapes = shapes_of(&problem)?;
        let file = format!("{}/kernel.cu", problem.slug);
        let mut mutants = assay_mutate::mutants_in(&problem.kernel_source, &file)?;
        let step = if each == 0 { 1 } else { mutants.len().div_ceil(each).max(1) };
        mutants = mutants.into_iter().step_by(step).collect();
        // Starts the workers, which is no part of a mutant's cost.
        let original =
            filter::compiled(&problem, &compiler, &options, &file, &problem.kernel_source, &shapes)?;
        let count = mutants.len();
        let (started, before) = (Instant::now(), processor());
        let sorted = threads.install(|| {
            filter::sort(&problem, &compiler, &options, &original, &shapes, mutants, &|_| Ok(()))
        })?;
        let line =
            Line { mutants: count, wall: started.elapsed().as_secs_f64(), processor: processor() - before };
        let mut fates = [0usize; 5];
        for c in &sorted {
            let fate = match &c.sorted {
                Sorted::Distinct => 0,
                Sorted::Duplicate(_) => 1,
                Sorted::Equivalent(_) => 2,
                Sorted::Noncompiling(_) => 3,
                Sorted::Quarantined(_) => 4,
            };
            fates[fate] += 1;
            let version = c.version.as_ref().map(|v| (&v.identity, &v.kernels));
            digest.update(format!("{} {} {:?} {version:?}\n", problem.key(), c.mutant.id, c.sorted));
        }
        if verbose {
            println!(
                "{:<44} {count:>4} mutants {:>7.1} ms wall {:>7.1} ms processor; distinct, duplicate, equivalent, \
                 noncompiling, quarantined: {fates:?}",
                problem.key(),
                line.wall * 1e3 / count.max(1) as f64,
                line.processor * 1e3 / count.max(1) as f64
            );
        }
        lines.push(line);
    }
    let mutants: usize = lines.iter().map(|l| l.mutants).sum();
    println!("{} problems, {mutants} mutants, {jobs} jobs", lines.len());
    println!("{}", summary(&lines, "wall time", |l| l.wall));
    println!("{}", summary(&lines, "processor time over the jobs", |l| l.processor / jobs as f64));
    println!("digest {}", assay_tensor::tensor::hex(&digest.finalize()[..16]));
    Ok(())
}
