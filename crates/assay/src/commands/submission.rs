//! `assay check` on Python files: submissions with `ModelNew` and inline CUDA; and on CUDA files that are an extension of
//! PyTorch's themselves, for which a `ModelNew` is written.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use assay_campaign::Progress as _;
use assay_campaign::check::{Check, Verdict};
use assay_measure::Protocol;
use assay_report::text;
use assay_submit::{
    Batch, CpuHost, Item, Limits, ProblemSource, Question, Settings, SubmitError, Way, problem_file,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::cli::{CheckArgs, Common};
use crate::commands::check::{
    DEFAULT_SUITE, SHIPPED, append, command, document, exit, file_name, files, page, scope,
};
use crate::commands::{list, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn failure(e: SubmitError) -> Failure {
    match e {
        SubmitError::Unusable(_) | SubmitError::Input(_) => Failure::bad_input(e),
        SubmitError::Worker(_) => Failure::bug(e),
        SubmitError::Io { .. } => Failure::cannot_write(e),
        SubmitError::Interrupted => Failure { exit: Exit::Exhausted, message: "interrupted".into() },
    }
}

/// Problems as they are named, and the files that stand for them.
struct Problems<'a> {
    args: &'a CheckArgs,
    /// Files that were made from the catalogue.
    made: tempfile::TempDir,
    shipped: BTreeMap<String, Vec<String>>,
    sources: BTreeMap<String, ProblemSource>,
}

impl<'a> Problems<'a> {
    fn new(args: &'a CheckArgs) -> Result<Problems<'a>, Failure> {
        let suite = match &args.suite {
            Some(name) => crate::commands::audit::protocol(name)?,
            None => Protocol::parse(SHIPPED, "suites/strongest.toml").map_err(Failure::bug)?,
        };
        let shipped = suite.problems.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let made = tempfile::tempdir()
            .map_err(|e| Failure::cannot_write(format!("a folder for problem files: {e}")))?;
        Ok(Problems { args, made, shipped, sources: BTreeMap::new() })
    }

    /// The key of a problem, whose file is looked up or made the first time.
    fn key(&mut self, name: &str) -> Result<String, Failure> {
        let path = Path::new(name);
        if path.join("func_forward.py").is_file() {
            let text = task(path)?;
            let made = self.made.path().join(format!("task_{}.py", self.sources.len()));
            fs::write(&made, text)
                .map_err(|e| Failure::cannot_write(format!("`{}`: {e}", made.display())))?;
            let source = ProblemSource {
                path: made,
                extents: None,
                shipped: Vec::new(),
                without_init: false,
                broadcasts: true,
            };
            self.sources.insert(name.to_owned(), source);
            return Ok(name.to_owned());
        }
        if path.extension().is_some_and(|e| e == "py") {
            if !path.is_file() {
                return Err(Failure::bad_input(format!("no problem file `{name}`")));
            }
            let source = ProblemSource {
                path: path.to_owned(),
                extents: None,
                shipped: Vec::new(),
                without_init: false,
                broadcasts: false,
            };
            self.sources.insert(name.to_owned(), source);
            return Ok(name.to_owned());
        }
        if let Some(dir) = &self.args.kernelbench {
            let key = numbers(name).ok_or_else(|| {
                Failure::bad_input(format!(
                    "`{name}` is no level and number such as `1/23`, which --kernelbench asks for"
                ))
            })?;
            let text = format!("{}/{}", key.0, key.1);
            if !self.sources.contains_key(&text) {
                let source = ProblemSource {
                    path: benchmark_file(dir, key)?,
                    extents: assay_torch::kernelbench::desk_extents(&text),
                    shipped: self.shipped.get(&text).cloned().unwrap_or_default(),
                    without_init: false,
                    broadcasts: false,
                };
                self.sources.insert(text.clone(), source);
            }
            return Ok(text);
        }
        let mut problems = list::find_problems(&[name.to_owned()])?;
        if problems.len() > 1 {
            return Err(Failure::bad_input(format!(
                "--problem {name} names {} problems; name one",
                problems.len()
            )));
        }
        let problem = problems.pop().ok_or_else(|| Failure::bad_input(format!("no problem `{name}`")))?;
        let key = problem.key();
        let text = problem_file(&problem).map_err(Failure::unsupported)?;
        let path = self.made.path().join(format!("l{}_p{}.py", problem.level, problem.id));
        fs::write(&path, text).map_err(|e| Failure::cannot_write(format!("`{}`: {e}", path.display())))?;
        let source = ProblemSource {
            path,
            extents: None,
            shipped: self.shipped.get(&key).cloned().unwrap_or_default(),
            without_init: true,
            broadcasts: false,
        };
        self.sources.insert(key.clone(), source);
        Ok(key)
    }
}

/// Is a file CUDA that binds functions for Python?
pub fn is_extension(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "cu")
        && list::read_source(path).is_ok_and(|text| text.contains("PYBIND11_MODULE"))
}

/// The `ModelNew` of a CUDA file in robust-kbench's style, whose `forward` takes the place of the problem's function:
/// `Model.forward(…, fn=forward_fn)` there. Where a problem has no such parameter, its inputs and then its parameters are
/// passed.
fn extension(name: &str, text: &str) -> String {
    format!(
        "import inspect\n\nfrom torch.utils.cpp_extension import load_inline\n\n\
         _extension = load_inline(name={name}, cpp_sources=\"\", cuda_sources={text})\n\n\n\
         class ModelNew(Model):\n    \
             def forward(self, *inputs):\n        \
                 if \"fn\" in inspect.signature(Model.forward).parameters:\n            \
                     return super().forward(*inputs, fn=_extension.forward)\n        \
                 return _extension.forward(*inputs, *self.parameters())\n",
        name = json!(name),
        text = json!(text),
    )
}

/// Words of Python that are no names.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// What is judged of a file: a Python file as it is, a CUDA file with a `ModelNew` around it.
fn model(path: &Path, text: &str) -> String {
    if path.extension().is_some_and(|e| e == "cu") {
        let stem = path.file_stem().map_or_else(|| "kernel".into(), |s| s.to_string_lossy());
        extension(&stem, text)
    } else {
        text.to_owned()
    }
}

/// A task folder of robust-kbench as a problem file: its first setting, with numbers as module-level names, so that
/// extents can be changed.
fn task(dir: &Path) -> Result<String, Failure> {
    let mut text = list::read_source(&dir.join("func_forward.py"))?;
    let config = dir.join("config_forward.json");
    let settings: Value = serde_json::from_str(&list::read_source(&config)?)
        .map_err(|e| Failure::bad_input(format!("`{}`: {e}", config.display())))?;
    let mut known: Map<String, Value> = Map::new();
    for list in ["single_shared_configs", "single_init_configs", "single_input_configs"] {
        let first = settings.get(list).and_then(Value::as_array).and_then(|l| l.first());
        for (name, value) in first.and_then(Value::as_object).into_iter().flatten() {
            let plain = |s: &str| {
                s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && !s.starts_with(|c: char| c.is_ascii_digit())
                    && !s.is_empty()
            };
            if !plain(name) || KEYWORDS.contains(&name.as_str()) {
                return Err(Failure::bad_input(format!(
                    "`{}`: `{name}` in `{list}` is no name that Python can give a value",
                    config.display()
                )));
            }
            known.insert(name.clone(), value.clone());
        }
    }
    text.push_str("\n\nimport inspect as _inspect\n\n_task_inputs = get_inputs\n");
    for (name, value) in &known {
        text.push_str(&format!("{name} = {}\n", python(value)));
    }
    let names: Vec<String> = known.keys().map(|n| format!("{}: {n}", json!(n))).collect();
    let names = names.join(", ");
    text.push_str(&format!(
        "\n\ndef get_inputs():\n    known = {{{names}}}\n    \
         taken = _inspect.signature(_task_inputs).parameters\n    \
         return list(_task_inputs(**{{k: v for k, v in known.items() if k in taken}}))\n\n\n\
         def get_init_inputs():\n    known = {{{names}}}\n    \
         taken = list(_inspect.signature(Model.__init__).parameters.values())[1:]\n    \
         return [known.get(p.name, p.default) for p in taken if p.kind == p.POSITIONAL_OR_KEYWORD]\n"
    ));
    Ok(text)
}

/// A JSON value as Python writes it.
fn python(v: &Value) -> String {
    match v {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// `1/23` as level and number.
fn numbers(name: &str) -> Option<(u32, u32)> {
    let (level, id) = name.split_once('/')?;
    Some((level.parse().ok()?, id.parse().ok()?))
}

/// The file of a problem: of a checkout of KernelBench, or `lL_pI.py` of a folder.
fn benchmark_file(dir: &Path, (level, id): (u32, u32)) -> Result<PathBuf, Failure> {
    let flat = dir.join(format!("l{level}_p{id}.py"));
    if flat.is_file() {
        return Ok(flat);
    }
    let mut found = assay_torch::kernelbench::find(dir, &[level], &[id]).map_err(Failure::bad_input)?;
    found.pop().map(|f| f.path).ok_or_else(|| Failure::bad_input(format!("no problem {level}/{id}")))
}

/// The problem that a file's name says, as KernelBench's runs name them: `level_1_problem_23_sample_0_kernel.py`.
fn named(file: &str) -> Option<String> {
    let number = |after: &str| {
        let rest = &file[file.find(after)? + after.len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    Some(format!("{}/{}", number("level_")?, number("_problem_")?))
}

fn settings(common: &Common, args: &CheckArgs) -> Result<Settings, Failure> {
    let only = args
        .inputs
        .iter()
        .map(|t| t.parse::<Question>().map_err(|e| Failure::bad_input(format!("--input: {e}"))))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Settings {
        precision: args.precision.name().to_owned(),
        pass_seconds: args.seconds.min(30),
        seconds: args.seconds,
        official_seconds: args.official_seconds,
        seed: common.seed,
        scope: scope(args),
        only,
        limits: Limits { cpu: args.seconds.saturating_mul(2), ..Limits::default() },
        shipped: Vec::new(),
        suite: args.suite.clone().unwrap_or_else(|| DEFAULT_SUITE.to_owned()),
    })
}

/// The command line that judges `path` again.
fn again(common: &Common, args: &CheckArgs, path: &Path, problem: &str) -> String {
    let mut words = command(common, args, path);
    let mut put = |flag: &str, value: &str| words.push_str(&format!(" {flag} {}", text::shell(value)));
    if args.problem.is_none() {
        put("--problem", problem);
    }
    if let Some(dir) = &args.kernelbench {
        put("--kernelbench", &dir.display().to_string());
    }
    if let Some(python) = &args.python {
        put("--python", &python.display().to_string());
    }
    if args.precision.name() != "fp32" {
        put("--precision", args.precision.name());
    }
    words
}

/// The interpreter that has PyTorch.
fn python_of(args: &CheckArgs) -> PathBuf {
    args.python.clone().unwrap_or_else(|| "python3".into())
}

/// Where extensions are built. `ASSAY_HOST` says how their host part runs: `interpreted`, `compiled`, or `auto`, which
/// compiles what the interpreter does not understand.
fn host(args: &CheckArgs, compiler: assay_nvrtc::Compiler) -> Result<CpuHost, Failure> {
    let way = match std::env::var("ASSAY_HOST") {
        Ok(text) if !text.is_empty() => {
            text.parse().map_err(|e| Failure::bad_input(format!("ASSAY_HOST: {e}")))?
        }
        _ => Way::Auto,
    };
    Ok(CpuHost::new(Arc::new(compiler), python_of(args), way))
}

fn batch<'h>(
    common: &Common,
    args: &CheckArgs,
    host: &'h CpuHost,
    problems: BTreeMap<String, ProblemSource>,
) -> Result<Batch<'h>, Failure> {
    // A second handler in one process cannot happen: this is the only command that runs.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    Ok(Batch {
        python: python_of(args),
        settings: settings(common, args)?,
        host,
        jobs: tools::jobs(common),
        interrupted: &INTERRUPTED,
        problems,
    })
}

fn warn(missing: &[String]) {
    if !missing.is_empty() {
        eprintln!(
            "warning: this system does not let submissions be confined whole ({}); run only what you trust",
            missing.join("; ")
        );
    }
}

/// Judges one file.
///
/// # Errors
/// No PyTorch, no problem, a `--jsonl` that cannot be written.
pub fn one(common: &Common, args: &CheckArgs) -> Result<Exit, Failure> {
    let name = args.problem.clone().or_else(|| named(&file_name(&args.path)));
    let name = name.ok_or_else(|| Failure::bad_input("name a problem with --problem"))?;
    let source = list::read_source(&args.path)?;
    let mut problems = Problems::new(args)?;
    let key = problems.key(&name)?;
    let model = model(&args.path, &source);
    let bar = Bar::new(common.quiet || common.json);
    let host = host(args, tools::compiler(&bar, 1)?)?;
    bar.message(&format!("{key}: starting PyTorch"));
    let item = Item {
        source: model,
        name: file_name(&args.path),
        problem: key.clone(),
        command: again(common, args, &args.path, &key),
    };
    let batch = batch(common, args, &host, problems.sources)?;
    let result: Mutex<Option<Check>> = Mutex::new(None);
    let ran = batch
        .run(std::slice::from_ref(&item), &|_, check| {
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(check);
        })
        .map_err(failure)?;
    bar.finish();
    let check = result
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .ok_or_else(|| Failure::bug("a submission was not judged"))?;
    warn(&ran.missing);
    let mut document = document(&args.path, Some(&key), &check)?;
    document["cold_seconds"] = json!(ran.cold_seconds);
    append(args, std::slice::from_ref(&document))?;
    if common.json {
        output::json(&document)?;
    } else {
        let mut text = page(args, &key, &source, &check, output::width());
        text.push_str(&format!(
            "  judged in {:.2} s, after {:.1} s until PyTorch was there; speed is not measured\n",
            check.seconds, ran.cold_seconds
        ));
        output::text(&text)?;
    }
    Ok(exit(&check, scope(args)))
}

/// A file of a folder.
struct Found {
    path: PathBuf,
    digest: String,
    problem: String,
}

/// Judges the files of a folder: Python, and CUDA that binds functions for Python.
///
/// # Errors
/// As [`one`].
pub fn folder(common: &Common, args: &CheckArgs) -> Result<Exit, Failure> {
    let mut paths = files(&args.path, "py")?;
    paths.extend(files(&args.path, "cu")?);
    paths.sort();
    if paths.is_empty() {
        return Err(Failure::bad_input(format!("no `.cu` and no `.py` file in `{}`", args.path.display())));
    }
    let listed: HashMap<String, String> = match &args.list {
        Some(path) => serde_json::from_str(&list::read_source(path)?)
            .map_err(|e| Failure::bad_input(format!("`{}` is no object of names: {e}", path.display())))?,
        None => HashMap::new(),
    };
    let mut problems = Problems::new(args)?;
    let mut found = Vec::new();
    let mut documents: BTreeMap<PathBuf, Value> = BTreeMap::new();
    let known = resumed(args);
    let mut sources: HashMap<String, String> = HashMap::new();
    for path in paths {
        let name = file_name(&path);
        let problem = args
            .problem
            .clone()
            .or_else(|| {
                let below = path.strip_prefix(&args.path).unwrap_or(&path).to_string_lossy();
                let stem = name.trim_end_matches(".py").trim_end_matches(".cu");
                listed.get(&*below).or_else(|| listed.get(&name)).or_else(|| listed.get(stem)).cloned()
            })
            .or_else(|| named(&name));
        let text = list::read_source(&path)?;
        let digest: String = Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        let early = |verdict, why: String| {
            document(&path, problem.as_deref(), &Check::early(verdict, why, DEFAULT_SUITE))
        };
        let Some(problem) = problem.clone() else {
            let why = "no problem is named: by --problem, --list or the file's name".to_owned();
            documents.insert(path.clone(), early(Verdict::Unsupported, why)?);
            continue;
        };
        let key = match problems.key(&problem) {
            Ok(key) => key,
            Err(e) => {
                documents.insert(path.clone(), early(Verdict::Unsupported, e.message)?);
                continue;
            }
        };
        if let Some(line) = known.get(&(path.display().to_string(), digest.clone())) {
            documents.insert(path, line.clone());
            continue;
        }
        sources.insert(digest.clone(), model(&path, &text));
        found.push(Found { path, digest, problem: key });
    }
    let bar = Bar::new(common.quiet || common.json);
    let host = host(args, tools::compiler(&bar, tools::jobs(common))?)?;
    found.sort_by(|a, b| {
        (number(&a.problem), &a.digest, &a.path).cmp(&(number(&b.problem), &b.digest, &b.path))
    });
    // The same text for the same problem is judged once.
    let mut firsts: Vec<usize> = Vec::new();
    for (i, f) in found.iter().enumerate() {
        let same = |j: &usize| (&found[*j].digest, &found[*j].problem) == (&f.digest, &f.problem);
        if !firsts.last().is_some_and(same) {
            firsts.push(i);
        }
    }
    let items: Vec<Item> = firsts
        .iter()
        .map(|&i| {
            let f = &found[i];
            Item {
                source: sources.get(&f.digest).cloned().unwrap_or_default(),
                name: file_name(&f.path),
                problem: f.problem.clone(),
                command: again(common, args, &f.path, &f.problem),
            }
        })
        .collect();
    bar.stage("submissions", items.len() as u64);
    let fresh: Mutex<Vec<(usize, Value)>> = Mutex::new(Vec::new());
    let fault: Mutex<Option<Failure>> = Mutex::new(None);
    let began = Instant::now();
    let batch = batch(common, args, &host, std::mem::take(&mut problems.sources))?;
    let ran = batch.run(&items, &|at, check| {
        let first = firsts[at];
        let copies = found[first..]
            .iter()
            .enumerate()
            .take_while(|(_, g)| (&g.digest, &g.problem) == (&found[first].digest, &found[first].problem));
        let lines: Result<Vec<(usize, Value)>, Failure> = copies
            .map(|(k, g)| {
                let mut line = document(&g.path, Some(&g.problem), &check)?;
                line["digest"] = json!(g.digest);
                if k > 0 {
                    line["duplicate_of"] = json!(found[first].path.display().to_string());
                }
                Ok((first + k, line))
            })
            .collect();
        let mut fresh = fresh.lock().unwrap_or_else(PoisonError::into_inner);
        let written = lines.and_then(|lines| {
            let values: Vec<Value> = lines.iter().map(|l| l.1.clone()).collect();
            append(args, &values)?;
            fresh.extend(lines);
            Ok(())
        });
        if let Err(e) = written {
            fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
        bar.step(1);
    });
    bar.finish();
    if let Some(e) = fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(e);
    }
    let ran = ran.map_err(failure)?;
    warn(&ran.missing);
    for (i, line) in fresh.into_inner().unwrap_or_else(PoisonError::into_inner) {
        documents.insert(found[i].path.clone(), line);
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut answer = Exit::Fine;
    for line in documents.values() {
        let verdict = line.get("verdict").and_then(Value::as_str).unwrap_or("unsupported").to_owned();
        let reward = line.get("reward").and_then(Value::as_f64);
        answer = answer.and(match (verdict.as_str(), reward) {
            ("unsupported", _) => Exit::Unsupported,
            ("exhausted", _) => Exit::Exhausted,
            (_, Some(r)) if r > 0.0 => Exit::Fine,
            _ => Exit::Wrong,
        });
        *counts.entry(verdict).or_default() += 1;
    }
    if common.json {
        let verdicts: Map<String, Value> = counts.iter().map(|(k, n)| (k.clone(), json!(n))).collect();
        output::json(&json!({
            "problem": args.problem, "files": documents.len(), "judged": items.len(), "verdicts": verdicts,
            "seconds": began.elapsed().as_secs_f64(), "cold_seconds": ran.cold_seconds,
            "environment": ran.environment, "results": documents.values().collect::<Vec<_>>(),
        }))?;
    } else {
        let rows = documents.iter().map(|(path, line)| {
            let text = |k: &str| line.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = path.strip_prefix(&args.path).unwrap_or(path).display().to_string();
            vec![name, text("problem"), text("verdict"), text::clean(&text("reason"))]
        });
        let mut page = list::table(&["File", "Problem", "Verdict", "Why"], rows);
        let words: Vec<String> = counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
        page.push_str(&text::wrap(
            &format!(
                "{}: {}; {} judged in {:.0} s, after {:.1} s until PyTorch was there; speed is not measured",
                text::counted(documents.len() as u64, "file"),
                words.join(", "),
                items.len(),
                began.elapsed().as_secs_f64(),
                ran.cold_seconds
            ),
            output::width(),
            "",
            "  ",
        ));
        output::text(&page)?;
    }
    Ok(answer)
}

/// Keys in the order of their numbers.
fn number(key: &str) -> (u32, u32, String) {
    let (level, id) = numbers(key).unwrap_or((u32::MAX, u32::MAX));
    (level, id, key.to_owned())
}

/// The lines of an earlier run with this `--jsonl`, by file and digest; what was `exhausted` is tried again.
fn resumed(args: &CheckArgs) -> HashMap<(String, String), Value> {
    let Some(text) = args.jsonl.as_ref().and_then(|p| fs::read_to_string(p).ok()) else {
        return HashMap::new();
    };
    text.lines()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok())
        .filter(|l| l.get("verdict").and_then(Value::as_str) != Some("exhausted"))
        .filter_map(|l| {
            let field = |k: &str| l.get(k).and_then(Value::as_str).map(str::to_owned);
            Some(((field("file")?, field("digest")?), l.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_python_cannot_name_are_bad_input_that_names_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("func_forward.py"), "def get_inputs(): return []\n").unwrap();
        for (name, good) in [("rows", true), ("lambda", false), ("2d", false), ("a-b", false), ("", false)] {
            let settings = json!({"single_input_configs": [{name: 3}]}).to_string();
            fs::write(dir.path().join("config_forward.json"), settings).unwrap();
            match task(dir.path()) {
                Ok(text) => assert!(good && text.contains(&format!("{name} = 3\n")), "{name}: {text}"),
                Err(e) => {
                    assert!(!good && e.message.contains(&format!("`{name}` in `single_input_configs`")));
                    assert_eq!(e.exit, Exit::BadInput, "{name}");
                }
            }
        }
    }

    #[test]
    fn the_names_of_a_benchmarks_runs_say_the_problem() {
        assert_eq!(named("level_1_problem_23_sample_0_kernel.py").as_deref(), Some("1/23"));
        assert_eq!(named("kernel.py"), None);
        assert_eq!(numbers("2/7"), Some((2, 7)));
        assert_eq!(numbers("level1/23_softmax"), None);
        assert!(number("1/9") < number("1/10"));
    }
}
