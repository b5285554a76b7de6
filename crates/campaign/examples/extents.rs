//! Do desk extents lie? The official check's verdicts on mutants at official extents against those at desk
//! extents.
//!
//! `cargo run --release -p assay-campaign --example extents -- [pattern…] [--survey] [--whole] [--mutants N]
//! [--random R] [--million M] [--jobs N] [--json FILE]`
//!
//! Without patterns: the problems of `docs/results/extents.md`. Per problem the protocol `kernelbench-2025`
//! judges every k-th distinct mutant twice: at official extents in sampled blocks (inputs made from their
//! index, the reference at the elements that the original's blocks wrote), and at desk extents whole, both
//! under strict memory; and once more at desk extents in the memory that protocols are scored in. `--survey`
//! runs the original alone and tells what can be sampled at what cost; `--whole` runs all blocks; `--million`
//! bounds the original's warp instructions on one input.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Instant;

use assay_campaign::sampled::study::survey;
use assay_campaign::sampled::{Config, Ending, Studied, study};
use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand, worker_main};
use assay_problems::{Problem, Root, discover};
use serde_json::json;

/// The problems that are studied unless others are named: one of each kind that can be sampled: elementwise,
/// matrix products (batched, by a vector, of odd sizes, triangular), rows and planes with statistics,
/// pooling, reductions, convolutions (strided, transposed, in several launches, depthwise), a scan, fused
/// chains of level 2.
const CHOSEN: &[&str] = &[
    "1/3", "1/4", "1/8", "1/15", "1/25", "1/36", "1/38", "1/42", "1/46", "1/47", "1/50", "1/64", "1/72",
    "1/84", "1/89", "2/12", "2/24", "2/37", "2/46", "2/91",
];

const PROTOCOL: &str = "kernelbench-2025";

struct Arguments {
    patterns: Vec<String>,
    survey: bool,
    config: Config,
    jobs: usize,
    json: Option<String>,
}

fn arguments(args: Vec<String>) -> Result<Arguments, String> {
    let mut out = Arguments {
        patterns: Vec::new(),
        survey: false,
        config: Config { mutants: 20, random: 4, seed: 0, instructions: 40_000_000, whole: false },
        jobs: 1,
        json: None,
    };
    let mut args = args.into_iter();
    while let Some(a) = args.next() {
        let mut number = || -> Result<u64, String> {
            let v = args.next().ok_or(format!("{a} wants a number"))?;
            v.parse().map_err(|_| format!("{a}: `{v}` is no number"))
        };
        match a.as_str() {
            "--survey" => out.survey = true,
            "--whole" => out.config.whole = true,
            "--mutants" => out.config.mutants = number()? as usize,
            "--random" => out.config.random = number()?,
            "--million" => out.config.instructions = number()?.saturating_mul(1_000_000),
            "--jobs" => out.jobs = number()? as usize,
            "--json" => out.json = Some(args.next().ok_or("--json wants a file")?),
            pattern => out.patterns.push(pattern.to_owned()),
        }
    }
    Ok(out)
}

fn describe(s: &Studied) -> String {
    let launches: Vec<String> = s
        .launches
        .iter()
        .map(|l| {
            let total: u64 = l.grid.iter().product();
            let ran = if l.list.is_empty() { total } else { l.list.len() as u64 };
            format!("{} {ran}/{total}", l.kernel)
        })
        .collect();
    format!(
        "{} of {} elements, {:.1} M warp instr, off by {:.1e}; {}",
        s.judged,
        s.elements,
        s.instructions as f64 / 1e6,
        s.original_threshold,
        launches.join(", ")
    )
}

/// Verdicts at official extents (rows) against those at desk extents (columns).
fn confusion(all: &[Studied]) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for m in all.iter().flat_map(|s| &s.mutants) {
        *out.entry(format!("{}/{}", m.official.ending.name(), m.desk.ending.name())).or_insert(0) += 1;
    }
    out
}

/// The tables and the disagreements, in Markdown.
fn page(all: &[Studied]) -> String {
    use std::fmt::Write as _;
    const ENDINGS: [Ending; 5] =
        [Ending::Pass, Ending::Mismatch, Ending::Fault, Ending::Exhausted, Ending::Unsupported];
    let mut s = String::from("| official \\ desk |");
    // Writing to a String cannot fail.
    for e in ENDINGS {
        let _ = write!(s, " {} |", e.name());
    }
    s.push_str("\n|---|---|---|---|---|---|\n");
    let counts = confusion(all);
    for row in ENDINGS {
        let _ = write!(s, "| {} |", row.name());
        for column in ENDINGS {
            let n = counts.get(&format!("{}/{}", row.name(), column.name())).copied().unwrap_or(0);
            let _ = write!(s, " {n} |");
        }
        s.push('\n');
    }
    s.push_str("\n| problem | distinct | taken | both reject | both pass | desk only rejects | official only rejects \
                | not judged |\n|---|---|---|---|---|---|---|---|\n");
    for p in all {
        let mut n = [0u64; 5];
        for m in &p.mutants {
            let k = match (m.official.ending.rejects(), m.desk.ending.rejects()) {
                (Some(true), Some(true)) => 0,
                (Some(false), Some(false)) => 1,
                (Some(false), Some(true)) => 2,
                (Some(true), Some(false)) => 3,
                _ => 4,
            };
            n[k] += 1;
        }
        let [both, neither, desk, official, open] = n;
        let _ = writeln!(
            s,
            "| {} {} | {} | {} | {both} | {neither} | {desk} | {official} | {open} |",
            p.problem,
            p.name,
            p.distinct,
            p.mutants.len()
        );
    }
    s.push('\n');
    for p in all {
        for m in &p.mutants {
            if m.official.ending.rejects() == m.desk.ending.rejects() && m.official.ending.rejects().is_some()
            {
                continue;
            }
            let side = |v: &assay_campaign::sampled::Verdict| {
                let t = v.threshold.map_or(String::new(), |t| format!(" {t:.2e}"));
                let input = v.input.as_ref().map_or(String::new(), |i| format!(" on `{i}`"));
                let note = if v.note.is_empty() { String::new() } else { format!(" ({})", v.note) };
                format!("{}{t}{input}{note}", v.ending.name())
            };
            let _ = writeln!(
                s,
                "- {} `{}` ({}): official {}; desk {}",
                p.problem,
                m.name,
                m.family,
                side(&m.official),
                side(&m.desk)
            );
        }
    }
    s
}

/// JSON with a line per value down to this depth, deeper ones on their line.
fn text(v: &serde_json::Value, depth: usize) -> String {
    use serde_json::Value;
    let parts: Vec<String> = match v {
        _ if depth == 0 => return v.to_string(),
        Value::Object(map) => {
            let part = |(k, v): (&String, &Value)| format!("{}: {}", json!(k), text(v, depth - 1));
            map.iter().map(part).collect()
        }
        Value::Array(all) => all.iter().map(|v| text(v, depth - 1)).collect(),
        _ => return v.to_string(),
    };
    let (open, close) = if v.is_object() { ("{", "}") } else { ("[", "]") };
    if parts.is_empty() {
        return format!("{open}{close}");
    }
    format!("{open}\n{}\n{close}", parts.join(",\n"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("worker") {
        std::process::exit(worker_main());
    }
    let mut args = arguments(args)?;
    if args.patterns.is_empty() && !args.survey {
        args.patterns = CHOSEN.iter().map(|s| (*s).to_owned()).collect();
    }
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |step| eprintln!("{step}"))?;
    let compiler = Compiler::new(install, worker, args.jobs, Limits::default());
    let protocols = assay_measure::builtin()?;
    let protocol = protocols.iter().find(|p| p.name == PROTOCOL).ok_or("no such protocol")?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs).build()?;
    let problems: Vec<Problem> = discover(&args.patterns, &Root::locate())?;
    let (mut all, mut refused) = (Vec::new(), BTreeMap::new());
    for problem in &problems {
        let started = Instant::now();
        let what = if args.survey { survey } else { study };
        let done = pool.install(|| what(problem, &compiler, protocol, &args.config));
        let seconds = started.elapsed().as_secs_f64();
        let mut out = std::io::stdout().lock();
        match done {
            Ok(s) => {
                writeln!(out, "{} {} [{seconds:.1} s]: {}", s.problem, problem.name, describe(&s))?;
                all.push(s);
            }
            Err(why) => {
                writeln!(out, "{} {} [{seconds:.1} s]: not studied: {why}", problem.key(), problem.name)?;
                refused.insert(problem.key(), why);
            }
        }
    }
    if !args.survey {
        println!("\n{}", page(&all));
    }
    if let Some(path) = &args.json {
        let arena = all.iter().flat_map(|s| &s.mutants);
        let differs = arena.filter(|m| m.desk.ending.rejects() != m.desk_arena.ending.rejects()).count();
        let document = json!({
            "protocol": PROTOCOL,
            "rules": assay_mutate::RULES.len(),
            "tolerance": assay_measure::Tolerance::PAPER.atol,
            "random_blocks": args.config.random,
            "whole": args.config.whole,
            "confusion": confusion(&all),
            "desk_strict_and_arena_differ": differs,
            "problems": all,
            "not_studied": refused,
        });
        std::fs::write(path, text(&document, 4) + "\n")?;
    }
    Ok(())
}
