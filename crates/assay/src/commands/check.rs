//! `assay check`: a file judged by a problem, or its own `launch` with every detector.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use assay_campaign::Progress as _;
use assay_campaign::check::{
    Check, CheckConfig, Checker, GoalScope, LaunchArg, LaunchRun, LaunchValue, Reached, Verdict,
    WrongElement, run_launch,
};
use assay_measure::Protocol;
use assay_problems::{Extents, Problem, Recipe};
use assay_report::text::{self, Side, Table};
use assay_simt::Schedule;
use assay_tensor::safetensors_io::digest;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::argspec::{ArgKind, ArgSpec};
use crate::cli::{CheckArgs, Common, ScheduleArg, ScopeArg};
use crate::commands::{audit, list, run, submission, tools};
use crate::diagnostic::Source;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Files that one folder may hold.
const MOST_FILES: usize = 20_000;
/// Folders below a folder that are searched.
const MAX_DEPTH: usize = 8;
/// Failing inputs and findings shown for people; the JSON has all.
const SHOWN: usize = 12;

/// The suite where none is named: what set cover selects of a whole audit to kill every witnessed fault, and the
/// targeted inputs, which also see what that audit did not plant.
pub(super) const DEFAULT_SUITE: &str = "strongest";
/// What it adds the shipped inputs to, and what there is for a problem that is not of the catalogue.
const TARGETED: &str = "targeted-all";
/// The shipped suite, as `assay suite RUN --budget 8 --out DIR` wrote it from `assay audit --all`.
pub(super) const SHIPPED: &str = include_str!("../../../../suites/strongest.toml");

/// Runs the command.
///
/// # Errors
/// Bad input (paths, problem, suite, recipes, `--arg`), what this version lacks, an unwritable `--jsonl`.
pub fn check(common: &Common, args: &CheckArgs) -> Result<Exit, Failure> {
    let meta = fs::metadata(&args.path)
        .map_err(|e| Failure::bad_input(format!("cannot read `{}`: {e}", args.path.display())))?;
    if meta.is_dir() {
        if args.sanitize_only {
            return Err(Failure::bad_input("--sanitize-only takes one `.cu` file, not a folder"));
        }
        // CUDA that binds functions for Python is judged as Python is; the rest by the catalogue.
        let cuda = files(&args.path, "cu")?;
        let extensions = cuda.iter().filter(|p| submission::is_extension(p)).count();
        if cuda.len() == extensions {
            return submission::folder(common, args);
        }
        if extensions > 0 || !files(&args.path, "py")?.is_empty() {
            return Err(Failure::bad_input(format!(
                "`{}` holds CUDA files with `launch` beside {}; put them in a folder each",
                args.path.display(),
                if extensions > 0 { "extensions of PyTorch" } else { "Python files" }
            )));
        }
        of_the_catalogue(args)?;
        return folder(common, args);
    }
    if submission::is_extension(&args.path) && !args.sanitize_only {
        return submission::one(common, args);
    }
    if args.path.extension().is_some_and(|e| e != "py") {
        of_the_catalogue(args)?;
    }
    match args.path.extension().and_then(|e| e.to_str()) {
        Some("py") => submission::one(common, args),
        Some("cu" | "cuh") if args.sanitize_only => sanitize(common, args),
        Some("cu" | "cuh") => one(common, args),
        _ => Err(Failure::bad_input(format!("`{}` is no `.cu` file", args.path.display()))),
    }
}

/// CUDA files are judged by the catalogue's problems.
fn of_the_catalogue(args: &CheckArgs) -> Result<(), Failure> {
    if args.kernelbench.is_none() {
        return Ok(());
    }
    Err(Failure::unsupported(
        "`--kernelbench` with CUDA files is not part of this version: a `.cu` file with kernels and `launch` is checked \
         against `assay problems`, a submission in Python against the benchmark's own files",
    ))
}

/// The problem, the suite and the inputs that the command line names.
struct Asked {
    problem: Problem,
    suite: Protocol,
    only: Vec<Recipe>,
}

fn asked(args: &CheckArgs) -> Result<Asked, Failure> {
    let name = args.problem.clone().ok_or_else(|| Failure::bad_input("name a problem with --problem"))?;
    let mut problems = list::find_problems(std::slice::from_ref(&name))?;
    if problems.len() > 1 {
        let keys: Vec<String> = problems.iter().take(8).map(Problem::key).collect();
        return Err(Failure::bad_input(format!(
            "--problem {name} names {} problems ({}…); name one",
            problems.len(),
            keys.join(", ")
        )));
    }
    let problem = problems.pop().ok_or_else(|| Failure::bad_input(format!("no problem `{name}`")))?;
    if !problem.refereeable {
        return Err(Failure::unsupported(format!(
            "problem {} cannot be refereed: float32 itself fails its float64 reference on the official inputs",
            problem.key()
        )));
    }
    let suite = match &args.suite {
        Some(name) => audit::protocol(name)?,
        None => strongest(&problem)?,
    };
    let only = args
        .inputs
        .iter()
        .map(|t| t.parse::<Recipe>().map_err(|e| Failure::bad_input(format!("--input: {e}"))))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Asked { problem, suite, only })
}

/// The strongest suite that ships for a problem. One of the catalogue's is known by the digest of its first shipped
/// input: a folder of the user's may have the same level and number.
fn strongest(problem: &Problem) -> Result<Protocol, Failure> {
    let targeted = audit::protocol(TARGETED)?;
    let shipped = Protocol::parse(SHIPPED, "suites/strongest.toml").map_err(Failure::bug)?;
    let key = problem.key();
    let (Some(recipes), Some(digests)) = (shipped.problems.get(&key), shipped.digests.get(&key)) else {
        return Ok(targeted);
    };
    let known = recipes.first().is_some_and(|text| {
        let tensors = text
            .parse::<Recipe>()
            .ok()
            .and_then(|recipe| problem.make_inputs(&recipe, Extents::Desk).ok())
            .map(|tensors| digest(&tensors));
        tensors.as_ref() == digests.get(text)
    });
    if !known {
        return Ok(targeted);
    }
    Ok(Protocol {
        name: DEFAULT_SUITE.to_owned(),
        title: shipped.title,
        description: shipped.description,
        source: shipped.source,
        extra_inputs: recipes.clone(),
        digests: [(key, digests.clone())].into(),
        ..targeted
    })
}

fn config<'a>(
    common: &Common,
    args: &CheckArgs,
    asked: &'a Asked,
    compiler: &'a assay_nvrtc::Compiler,
) -> CheckConfig<'a> {
    CheckConfig {
        problem: &asked.problem,
        compiler,
        options: tools::compile_options(&args.compile),
        suite: &asked.suite,
        only: &asked.only,
        seed: common.seed,
        scope: scope(args),
    }
}

pub(super) fn scope(args: &CheckArgs) -> GoalScope {
    match args.scope {
        ScopeArg::Official => GoalScope::Official,
        ScopeArg::General => GoalScope::General,
    }
}

/// The command line that judges `path` again, to which `--input` may be added.
pub(super) fn command(common: &Common, args: &CheckArgs, path: &Path) -> String {
    let mut words = vec!["assay check".to_owned(), text::shell(&path.display().to_string())];
    let mut put = |flag: &str, value: &str| {
        words.push(flag.to_owned());
        words.push(text::shell(value));
    };
    if let Some(p) = &args.problem {
        put("--problem", p);
    }
    if common.seed != 0 {
        put("--seed", &common.seed.to_string());
    }
    for (flag, dir) in args.compile.include.iter().map(|d| ("-I", d)) {
        put(flag, &dir.display().to_string());
    }
    for d in &args.compile.define {
        put("-D", d);
    }
    let c = &args.compile;
    for (flag, value, usual) in [("--std", &c.std, "c++17"), ("--arch", &c.arch, "sm_90")] {
        if value != usual {
            put(flag, value);
        }
    }
    if !c.fmad {
        put("--fmad", "false");
    }
    if c.fast_math {
        words.push("--fast-math".into());
    }
    words.join(" ")
}

pub(super) fn exit(check: &Check, scope: GoalScope) -> Exit {
    match (check.verdict, check.succeeds(scope)) {
        (Verdict::Unsupported, _) => Exit::Unsupported,
        (Verdict::Exhausted, _) => Exit::Exhausted,
        (_, Some(true)) => Exit::Fine,
        (_, Some(false) | None) => Exit::Wrong,
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "kernel.cu".into(), |n| n.to_string_lossy().into_owned())
}

/// The JSON of a file.
pub(super) fn document(
    path: &Path,
    problem: Option<&str>,
    check: &impl serde::Serialize,
) -> Result<Value, Failure> {
    let mut map = Map::new();
    map.insert("file".into(), json!(path.display().to_string()));
    map.insert("problem".into(), json!(problem));
    if let Value::Object(rest) = serde_json::to_value(check).map_err(Failure::bug)? {
        map.extend(rest);
    }
    Ok(Value::Object(map))
}

/// Appends lines to `--jsonl`.
pub(super) fn append(args: &CheckArgs, documents: &[Value]) -> Result<(), Failure> {
    let Some(path) = &args.jsonl else { return Ok(()) };
    let mut lines = String::new();
    for d in documents {
        lines.push_str(&serde_json::to_string(d).map_err(Failure::bug)?);
        lines.push('\n');
    }
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut f| f.write_all(lines.as_bytes()).and_then(|()| f.flush()))
        .map_err(|e| Failure::cannot_write(format!("cannot write `{}`: {e}", path.display())))
}

fn one(common: &Common, args: &CheckArgs) -> Result<Exit, Failure> {
    let asked = asked(args)?;
    let source = list::read_kernel(&args.path)?.text;
    let bar = Bar::new(common.quiet || common.json);
    let compiler = tools::compiler(&bar, 1)?;
    bar.message(&format!("{}: inputs and references", asked.problem.key()));
    let check = tools::pool(common)?
        .install(|| {
            let checker = Checker::new(config(common, args, &asked, &compiler))?;
            bar.message(&format!("{}: {} inputs", asked.problem.key(), checker.inputs()));
            checker.check(&source, &file_name(&args.path), &command(common, args, &args.path))
        })
        .map_err(|e| audit::failure(&e))?;
    bar.finish();
    let document = document(&args.path, Some(&asked.problem.key()), &check)?;
    append(args, std::slice::from_ref(&document))?;
    if common.json {
        output::json(&document)?;
    } else {
        let title = format!("{}/{} {}", asked.problem.level, asked.problem.id, asked.problem.name);
        output::text(&page(args, &title, &source, &check, output::width()))?;
    }
    Ok(exit(&check, scope(args)))
}

/// The files with that ending at or below a folder, in order of their paths.
pub(super) fn files(dir: &Path, ending: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    let mut work = vec![(dir.to_owned(), 0)];
    while let Some((d, depth)) = work.pop() {
        let entries = fs::read_dir(&d)
            .map_err(|e| Failure::bad_input(format!("cannot read `{}`: {e}", d.display())))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            // Links to folders may go round in circles.
            if kind.is_dir() && depth < MAX_DEPTH {
                work.push((path, depth + 1));
            } else if path.extension().is_some_and(|e| e == ending) && !path.is_dir() {
                out.push(path);
            }
            if out.len() > MOST_FILES {
                return Err(Failure::bad_input(format!(
                    "more than {MOST_FILES} `.{ending}` files in `{}`",
                    dir.display()
                )));
            }
        }
    }
    out.sort();
    Ok(out)
}

fn folder(common: &Common, args: &CheckArgs) -> Result<Exit, Failure> {
    let asked = asked(args)?;
    let files = files(&args.path, "cu")?;
    if files.is_empty() {
        return Err(Failure::bad_input(format!("no `.cu` file in `{}`", args.path.display())));
    }
    let bar = Bar::new(common.quiet || common.json);
    let compiler = tools::compiler(&bar, tools::jobs(common))?;
    let pool = tools::pool(common)?;
    let key = asked.problem.key();
    let checker = pool
        .install(|| Checker::new(config(common, args, &asked, &compiler)))
        .map_err(|e| audit::failure(&e))?;
    bar.stage(&format!("{key}: files"), files.len() as u64);
    let scope = scope(args);
    let mut documents = Vec::new();
    let mut rows = Vec::new();
    let mut answer = Exit::Fine;
    for chunk in files.chunks(4 * tools::jobs(common)) {
        let checks: Vec<Check> = pool.install(|| {
            chunk
                .par_iter()
                .map(|path| {
                    let check = match list::read_kernel(path) {
                        Ok(source) => checker
                            .check(&source.text, &file_name(path), &command(common, args, path))
                            .map_err(|e| audit::failure(&e))?,
                        Err(e) => Check::early(Verdict::Rejected, e.message, &asked.suite.name),
                    };
                    bar.step(1);
                    Ok(check)
                })
                .collect::<Result<_, Failure>>()
        })?;
        let fresh: Vec<Value> = chunk
            .iter()
            .zip(&checks)
            .map(|(path, check)| document(path, Some(&key), check))
            .collect::<Result<_, _>>()?;
        append(args, &fresh)?;
        documents.extend(fresh);
        for (path, check) in chunk.iter().zip(checks) {
            answer = answer.and(exit(&check, scope));
            rows.push((path.clone(), check));
        }
    }
    bar.finish();
    let counts: Vec<(&str, usize)> = Verdict::ALL
        .into_iter()
        .map(|v| (v.name(), rows.iter().filter(|r| r.1.verdict == v).count()))
        .filter(|c| c.1 > 0)
        .collect();
    if common.json {
        let verdicts: Map<String, Value> =
            counts.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect();
        output::json(&json!({
            "problem": key, "files": rows.len(), "verdicts": verdicts, "results": documents,
        }))?;
    } else {
        let table = rows.iter().map(|(path, check)| {
            let name = path.strip_prefix(&args.path).unwrap_or(path).display().to_string();
            vec![name, check.verdict.name().to_owned(), text::clean(&check.reason)]
        });
        let mut page = list::table(&["File", "Verdict", "Why"], table);
        let words: Vec<String> = counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
        page.push_str(&text::wrap(
            &format!("{}: {}", text::counted(rows.len() as u64, "file"), words.join(", ")),
            output::width(),
            "",
            "  ",
        ));
        output::text(&page)?;
    }
    Ok(answer)
}

/// `1e-2`, or both where they differ.
fn tolerance(atol: f64, rtol: f64) -> String {
    if atol == rtol { format!("atol = rtol = {atol:e}") } else { format!("atol {atol:e}, rtol {rtol:e}") }
}

fn value(v: f64) -> String {
    if v.is_nan() {
        return "nan".into();
    }
    if v.fract() == 0.0 && v.abs() < 1e15 {
        return format!("{v}");
    }
    let plain = format!("{:.6}", v);
    if (1e-3..1e6).contains(&v.abs()) { plain } else { format!("{v:.5e}") }
}

fn place(w: &WrongElement) -> String {
    let at: Vec<String> = w.at.iter().map(u64::to_string).collect();
    format!("{}[{}]", w.output, at.join(","))
}

/// The page for people.
pub(super) fn page(args: &CheckArgs, problem: &str, source: &str, check: &Check, width: usize) -> String {
    let mut s = text::wrap(
        &format!("{}: {} ({problem})", check.verdict.name(), args.path.display()),
        width,
        "",
        "  ",
    );
    s.push_str(&text::wrap(&text::clean(&check.reason), width, "  ", "  "));
    if let Some(log) = &check.log {
        s.push('\n');
        s.push_str(log.trim_end());
        s.push('\n');
        return s;
    }
    s.push('\n');
    let mut row = |name: &str, what: String| {
        s.push_str(&text::wrap(&what, width, &format!("  {name:<15} "), &" ".repeat(18)));
    };
    let o = &check.official;
    if let Some(threshold) = o.threshold {
        let extents = match (o.extents, o.sampled) {
            (Reached::Official, _) => "official extents".to_owned(),
            (Reached::Sampled, None) => "official extents, some of the seeds".into(),
            (Reached::Sampled, Some(s)) => {
                format!("official extents, a sample of blocks ({} of {} elements)", s.elements, s.of)
            }
            (Reached::Desk, _) => "desk extents".into(),
        };
        let verb = match o.passes_there {
            Some(true) => format!("passes at {extents}"),
            Some(false) => format!("fails at {extents}"),
            None => format!("asked in part, at {extents}"),
        };
        let today = match o.passes_at_1e_4 {
            Some(true) => "; passes at 1e-4 (KernelBench's code today) as well",
            Some(false) => "; fails at 1e-4 (KernelBench's code today)",
            None => "",
        };
        row(
            "official check",
            format!(
                "{verb}: {}, tolerance {:e}, worst threshold {}{today}",
                o.protocol,
                o.tolerance,
                text::threshold(threshold)
            ),
        );
    }
    if check.suite.inputs > 0 {
        let mut what = match check.suite.failed {
            0 => format!("{} pass", text::counted(check.suite.inputs - check.suite.invalid, "input")),
            n => format!("{n} of {} fail", text::counted(check.suite.inputs, "input")),
        };
        if args.inputs.is_empty() {
            what.push_str(&format!(": {} and the problem's ragged shapes", check.suite.name));
        }
        if check.suite.invalid > 0 {
            what.push_str(&format!(
                "; {} on which correct kernels differ as much count for nothing",
                check.suite.invalid
            ));
        }
        row("suite", what);
        let found = match check.findings.len() as u64 {
            0 => "no findings".to_owned(),
            n => text::counted(n, "finding"),
        };
        row("detectors", format!("{found} at {}", text::counted(check.sanitized_shapes, "shape")));
    }
    if !check.tricks.is_empty() {
        let names: Vec<&str> = check.tricks.iter().map(|t| t.name()).collect();
        row("tricks", names.join(", "));
    }
    failing(&mut s, check, width);
    let quoted = Source { path: &args.path, text: source };
    let ours = !check.findings.iter().any(|f| f.own_extents);
    for (k, f) in check.findings.iter().take(SHOWN).enumerate() {
        if k == 0 {
            s.push('\n');
        }
        s.push_str(&quoted.finding(&f.finding, width));
        if let Some(recipe) = &f.recipe {
            let other = if f.own_extents || ours { "" } else { " (other extents)" };
            s.push_str(&format!("  = seen on input {recipe}{other}\n"));
        }
        s.push('\n');
    }
    if check.findings.len() > SHOWN {
        s.push_str(&format!("and {} more findings; --json has all\n", check.findings.len() - SHOWN));
    }
    if let (Some(f), true) = (check.findings.first(), check.failing_inputs.is_empty()) {
        s.push_str(&format!("replay: {}\n", f.replay));
    }
    if !s.ends_with("\n\n") {
        s.push('\n');
    }
    s.push_str(&format!(
        "{} warp instructions in {:.2} s\n",
        text::number(check.instructions),
        check.seconds
    ));
    s
}

/// The failing inputs as a table, and how to see the first again.
fn failing(s: &mut String, check: &Check, width: usize) {
    let Some(first) = check.failing_inputs.first() else { return };
    s.push('\n');
    let mut t = Table::new(&[
        ("Failing input", Side::Left),
        ("threshold", Side::Right),
        ("first wrong", Side::Left),
        ("got", Side::Right),
        ("want", Side::Right),
        ("elements", Side::Right),
    ]);
    let mut messages = Vec::new();
    for f in check.failing_inputs.iter().take(SHOWN) {
        let mut cells = vec![f.recipe.clone()];
        match &f.first_wrong {
            Some(w) => cells.extend([
                text::threshold(f.threshold),
                place(w),
                value(w.got),
                value(w.want),
                text::number(w.wrong_elements),
            ]),
            None => {
                cells.extend(["–".into(), f.end.name().to_owned(), "–".into(), "–".into(), "–".into()]);
                if let Some(m) = &f.message
                    && !messages.contains(m)
                {
                    messages.push(m.clone());
                }
            }
        }
        t.row(cells);
    }
    s.push_str(&t.draw(width));
    if check.failing_inputs.len() > SHOWN {
        s.push_str(&format!("and {} more; --json has all\n", check.failing_inputs.len() - SHOWN));
    }
    for m in messages {
        s.push_str(&text::wrap(&text::clean(&m), width, "no output: ", "  "));
    }
    s.push_str(&format!("judged at {}\n", tolerance(first.atol, first.rtol)));
    s.push_str(&format!("replay: {}\n", first.replay));
}

/// The parameters of `launch` that `--arg` give.
///
/// # Errors
/// Bad input: no argument, or one that `launch` cannot take.
pub fn launch_args(texts: &[String]) -> Result<Vec<LaunchArg>, Failure> {
    let specs = run::specs(texts)?;
    let mut launch_args = Vec::new();
    let mut buffers: std::collections::BTreeMap<String, (assay_tensor::Tensor, bool)> =
        run::tensors(&specs)?.into_iter().map(|(name, tensor, fresh)| (name, (tensor, fresh))).collect();
    for s in &specs {
        let value = match &s.kind {
            ArgKind::Buffer { .. } | ArgKind::File { .. } => {
                let (tensor, fresh) =
                    buffers.remove(&s.name).ok_or_else(|| Failure::bug("a buffer was lost"))?;
                LaunchValue::Tensor { tensor, fresh }
            }
            ArgKind::Scalar { dtype, bytes } => scalar(*dtype, bytes, s)?,
            ArgKind::Null | ArgKind::Alias { .. } | ArgKind::Bytes(_) => {
                return Err(Failure::bad_input(format!(
                    "--arg `{}`: `launch` takes buffers and numbers; null, aliases and structs are for `assay run`",
                    s.name
                )));
            }
        };
        launch_args.push(LaunchArg { name: s.name.clone(), value });
    }
    Ok(launch_args)
}

/// `--sanitize-only`.
fn sanitize(common: &Common, args: &CheckArgs) -> Result<Exit, Failure> {
    let launch_args = launch_args(&args.args)?;
    let source = list::read_kernel(&args.path)?.text;
    let bar = Bar::new(common.quiet || common.json);
    let compiler = tools::compiler(&bar, 1)?;
    let (schedule, schedule_name) = match args.schedule {
        ScheduleArg::Hardware => (Schedule::Hardware, "hardware"),
        ScheduleArg::RunAhead => (Schedule::RunAhead, "run-ahead"),
    };
    let name = file_name(&args.path);
    let ran = run_launch(
        &source,
        &name,
        &launch_args,
        &compiler,
        &tools::compile_options(&args.compile),
        schedule,
        common.seed,
    )
    .map_err(|e| audit::failure(&e))?;
    bar.finish();
    let mut again = command(common, args, &args.path);
    again.push_str(" --sanitize-only");
    for a in &args.args {
        again.push_str(&format!(" --arg {}", text::shell(a)));
    }
    again.push_str(&format!(" --schedule {schedule_name}"));
    let verdict = ran.verdict;
    let document = sanitized_document(&args.path, &ran, &again)?;
    append(args, std::slice::from_ref(&document))?;
    if common.json {
        output::json(&document)?;
    } else {
        output::text(&sanitized_page(args, &source, &ran, &launch_args, &again, output::width()))?;
    }
    Ok(match verdict {
        Verdict::Correct => Exit::Fine,
        Verdict::Unsupported => Exit::Unsupported,
        Verdict::Exhausted => Exit::Exhausted,
        Verdict::Wrong
        | Verdict::UndefinedBehaviour
        | Verdict::NotGeneral
        | Verdict::Rejected
        | Verdict::Crashed => Exit::Wrong,
    })
}

/// A number for `launch`.
fn scalar(dtype: assay_tensor::DType, bytes: &[u8], s: &ArgSpec) -> Result<LaunchValue, Failure> {
    let t = assay_tensor::Tensor::from_bytes(dtype, &[], bytes.to_vec()).map_err(Failure::bug)?;
    if dtype.is_float() {
        return Ok(LaunchValue::Float(t.get_f64(0)));
    }
    let v = t.get_i128(0).unwrap_or(0);
    i64::try_from(v)
        .map(LaunchValue::Int)
        .map_err(|_| Failure::bad_input(format!("--arg `{}`: {v} does not fit 64 signed bits", s.name)))
}

fn sanitized_document(path: &Path, ran: &LaunchRun, again: &str) -> Result<Value, Failure> {
    let mut check = Check::early(ran.verdict, ran.reason.clone(), "");
    check.log.clone_from(&ran.log);
    check.instructions = ran.instructions;
    check.seconds = ran.seconds;
    check.findings = ran
        .findings
        .iter()
        .map(|f| assay_campaign::check::SeenFinding {
            finding: f.clone(),
            recipe: None,
            own_extents: true,
            replay: again.to_owned(),
        })
        .collect();
    let mut d = document(path, None, &check)?;
    if let Value::Object(map) = &mut d {
        map.insert("outputs".into(), run::outputs_json(&ran.outputs).into());
        map.insert("printf".into(), json!(ran.printf));
        map.insert("launches".into(), json!(ran.launches));
    }
    Ok(d)
}

fn sanitized_page(
    args: &CheckArgs,
    source: &str,
    ran: &LaunchRun,
    given: &[LaunchArg],
    again: &str,
    width: usize,
) -> String {
    let mut s = String::new();
    for line in &ran.printf {
        s.push_str(line);
        if !line.ends_with('\n') {
            s.push('\n');
        }
    }
    s.push_str(&text::wrap(
        &format!("{}: {}, `launch` on the tensors given", ran.verdict.name(), args.path.display()),
        width,
        "",
        "  ",
    ));
    s.push_str(&text::wrap(&text::clean(&ran.reason), width, "  ", "  "));
    if let Some(log) = &ran.log {
        s.push_str(&format!("\n{}\n", log.trim_end()));
        return s;
    }
    s.push('\n');
    if !ran.outputs.is_empty() {
        let rows = given.iter().filter_map(|a| match &a.value {
            LaunchValue::Tensor { tensor, fresh } => {
                let after = ran.outputs.get(&a.name)?;
                Some(run::buffer_row(&a.name, after, (!fresh).then_some(tensor)))
            }
            LaunchValue::Int(_) | LaunchValue::Float(_) => None,
        });
        s.push_str(&list::table(&run::BUFFER_HEADER, rows));
    }
    let quoted = Source { path: &args.path, text: source };
    for f in ran.findings.iter().take(SHOWN) {
        s.push_str(&quoted.finding(f, width));
        s.push('\n');
    }
    if ran.findings.len() > SHOWN {
        s.push_str(&format!("and {} more findings; --json has all\n", ran.findings.len() - SHOWN));
    }
    if !ran.findings.is_empty() {
        s.push_str(&format!("replay: {again}\n\n"));
    }
    s.push_str(&format!(
        "{}, {} warp instructions in {:.3} s\n",
        if ran.launches == 1 { "1 launch".to_owned() } else { format!("{} launches", ran.launches) },
        text::number(ran.instructions),
        ran.seconds
    ));
    s
}
