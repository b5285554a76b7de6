//! Units in, images out: batches, workers, fallbacks.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::batch::{self, Part, Probe};
use crate::includes::{self, Roots};
use crate::install::Install;
use crate::landlock;
use crate::lex::lex;
use crate::pool::{CallError, Limits, Pool, WorkerCommand};
use crate::prelude;
use crate::protocol::{CompileRequest, Output};
use crate::unit::{Shape, analyse};

/// How to compile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// A real architecture, as `sm_90`: PTX and machine code come from one call.
    pub arch: String,
    /// C++ dialect, as `c++17`.
    pub std: String,
    /// Contract `a * b + c` (NVRTC's default).
    pub fmad: bool,
    /// `--use_fast_math`.
    pub fast_math: bool,
    /// Macros: name and value; an empty value defines the name as empty.
    pub defines: Vec<(String, String)>,
    /// Folders for `#include`, which workers may read.
    pub include_dirs: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            arch: "sm_90".into(),
            std: "c++17".into(),
            fmad: true,
            fast_math: false,
            defines: vec![],
            include_dirs: vec![],
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), String> {
        let word =
            |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '+');
        if !self.arch.strip_prefix("sm_").is_some_and(word) {
            return Err(format!("architecture `{}` is not of the form `sm_90`", self.arch));
        }
        if !word(&self.std) {
            return Err(format!("`{}` is not a C++ dialect, as `c++17`", self.std));
        }
        for (name, value) in &self.defines {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
            if !plain || value.contains(['\n', '\0']) {
                return Err(format!("`-D {name}` is not a macro name with a value of one line"));
            }
        }
        for dir in &self.include_dirs {
            if !dir.is_dir() {
                return Err(format!("include folder `{}` does not exist", dir.display()));
            }
        }
        Ok(())
    }

    fn flags(&self, install: &Install) -> Vec<String> {
        let mut out = vec![
            format!("--gpu-architecture={}", self.arch),
            format!("--std={}", self.std),
            "-lineinfo".into(),
            // What has no execution space is host code to `nvcc`; what of it the caller left in is for the device:
            // constexpr functions that kernels use, prototypes of host functions in headers.
            "--device-as-default-execution-space".into(),
            format!("--fmad={}", self.fmad),
            // Machine code with its relocations: the identity needs to see what refers to what.
            "--ptxas-options=-c".into(),
        ];
        if self.fast_math {
            out.push("--use_fast_math".into());
        }
        for (name, value) in &self.defines {
            out.push(format!("-D{name}={value}"));
        }
        for dir in include_roots(install).iter().chain(&absolute(&self.include_dirs)) {
            out.push(format!("-I{}", dir.display()));
        }
        out
    }
}

fn include_roots(install: &Install) -> Vec<PathBuf> {
    vec![install.include.clone(), install.include.join("cccl")]
}

fn absolute(dirs: &[PathBuf]) -> Vec<PathBuf> {
    dirs.iter().map(|d| std::fs::canonicalize(d).unwrap_or_else(|_| d.clone())).collect()
}

/// One source to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// What the caller calls it; not looked at.
    pub name: String,
    /// File name for messages and line information.
    pub file: String,
    /// CUDA C++, device code only.
    pub source: String,
    /// Name expressions of the kernels wanted, as `softmax` or `scale<float,3>`.
    pub kernels: Vec<String>,
}

/// A compiled unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// PTX of the whole call; units of one batch share it.
    pub ptx: Arc<str>,
    /// PTX entry name by name expression.
    pub entries: BTreeMap<String, String>,
    /// Identity (SHA-256, hex) by name expression: equal whatever batch the unit was compiled in.
    pub identity: BTreeMap<String, String>,
    /// The compiler's warnings; only known when the unit was compiled alone.
    pub log: String,
}

/// Why there is no image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompileErrorKind {
    /// The compiler refuses the source, a kernel does not exist, or a header is not allowed.
    Rejected,
    /// The options are wrong.
    Options,
    /// The compiler ran out of time.
    TimedOut,
    /// The compiler crashed, or ran out of memory.
    Crashed,
    /// No compiler could be started.
    Unavailable,
}

/// A message about a line of the unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// 1-based line in the unit's file; `None` where the message is about something else.
    pub line: Option<u32>,
    /// The first line of the message, without place and the word `error`.
    pub message: String,
}

/// A unit that did not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.summary())]
pub struct CompileError {
    /// What kind of failure it is.
    pub kind: CompileErrorKind,
    /// The compiler's log, with the unit's own file name and lines.
    pub log: String,
    /// The errors in it.
    pub lines: Vec<LogLine>,
}

impl CompileError {
    fn new(kind: CompileErrorKind, file: &str, line: Option<u32>, message: String) -> Self {
        let log = match line {
            Some(line) => format!("{file}({line}): error: {message}\n"),
            None => format!("{file}: error: {message}\n"),
        };
        Self { kind, log, lines: vec![LogLine { line, message }] }
    }

    /// What a compiler's log says about a unit that it refused.
    fn from_log(log: &str, unit: &Unit) -> Self {
        let file = batch::label(&unit.file);
        let mut lines = Vec::new();
        for text in log.lines() {
            let Some((place, message)) = split_error(text) else { continue };
            let line = place.strip_suffix(')').and_then(|p| p.rsplit_once('('));
            let line = line.filter(|(f, _)| *f == file || f.strip_prefix('/') == Some(&file));
            let mut line = line.and_then(|(_, n)| n.parse().ok());
            if place == "At end of source" {
                line = u32::try_from(unit.source.lines().count().max(1)).ok();
            }
            lines.push(LogLine { line, message: message.to_owned() });
        }
        if lines.is_empty() {
            lines.push(LogLine { line: None, message: "the compiler gave no reason".into() });
        }
        Self { kind: CompileErrorKind::Rejected, log: log.to_owned(), lines }
    }

    fn summary(&self) -> String {
        // What is said of the unit's own lines explains more than what follows from it elsewhere.
        let own = self.lines.iter().find(|l| l.line.is_some());
        let Some(first) = own.or(self.lines.first()) else { return "compilation failed".into() };
        let more = match self.lines.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        match first.line {
            Some(line) => format!("line {line}: {}{more}", first.message),
            None => format!("{}{more}", first.message),
        }
    }
}

/// Place and message of a log line that states an error.
fn split_error(text: &str) -> Option<(&str, &str)> {
    for mark in [
        ": error: ",
        ": catastrophic error: ",
        ": internal error: ",
        "; error   : ",
        "; fatal   : ",
        "fatal   : ",
    ] {
        if let Some((place, message)) = text.split_once(mark) {
            return Some((place, message));
        }
    }
    // With a number: `: error #20-D: …`.
    let (place, rest) = text.split_once(": error #")?;
    Some((place, rest.split_once(": ")?.1))
}

/// Compiles units in a pool of confined workers.
///
/// Workers start when they are first needed and stay; dropping the compiler ends them. Any number of threads may
/// call [`Compiler::compile`] at once.
pub struct Compiler {
    pool: Pool,
    unconfined: bool,
    /// Whether a name exists before a unit's first line, by includes and options.
    known: Mutex<HashMap<(String, Names), bool>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Names {
    name: String,
    function: bool,
}

/// A unit that passed the checks.
struct Candidate {
    /// `None`: to be compiled alone.
    shape: Option<Shape>,
    shared: Vec<String>,
}

impl Compiler {
    /// A compiler with at most `jobs` workers.
    pub fn new(install: Install, worker: WorkerCommand, jobs: usize, limits: Limits) -> Self {
        let unconfined = !limits.landlock || landlock::abi() == 0;
        Self { pool: Pool::new(install, worker, jobs, limits), unconfined, known: Mutex::default() }
    }

    /// The NVRTC in use.
    pub fn install(&self) -> &Install {
        self.pool.install()
    }

    /// Whether the system keeps the workers from reading files; where not, the check of includes does it alone.
    pub fn is_confined(&self) -> bool {
        !self.unconfined
    }

    /// Compiles every unit; results in the order of the units.
    ///
    /// Units that can share an NVRTC call do, up to [`Limits::batch_units`] each; a unit that fails, or takes its
    /// worker down, is found and costs only itself. How units are batched shows in nothing but [`Image::ptx`],
    /// [`Image::entries`] and the time.
    pub fn compile(&self, options: &Options, units: &[Unit]) -> Vec<Result<Image, CompileError>> {
        if let Err(message) = options.check() {
            let fail =
                |u: &Unit| Err(CompileError::new(CompileErrorKind::Options, &u.file, None, message.clone()));
            return units.iter().map(fail).collect();
        }
        let job = Job {
            compiler: self,
            flags: options.flags(self.pool.install()),
            dirs: absolute(&options.include_dirs),
            options,
            units,
        };
        job.run()
    }
}

/// Splits `count` units into ranges of at most `max`, evenly over `jobs` workers.
pub fn batches(count: usize, max: usize, jobs: usize) -> Vec<Range<usize>> {
    let (max, jobs) = (max.max(1), jobs.max(1));
    if count == 0 {
        return vec![];
    }
    // A multiple of the jobs, so that no worker is left with a lone last batch.
    let parts = count.div_ceil(max).div_ceil(jobs).saturating_mul(jobs).min(count);
    (0..parts).map(|i| count * i / parts..count * (i + 1) / parts).collect()
}

/// One call of [`Compiler::compile`].
struct Job<'a> {
    compiler: &'a Compiler,
    options: &'a Options,
    flags: Vec<String>,
    dirs: Vec<PathBuf>,
    units: &'a [Unit],
}

type Outcome = Result<Image, CompileError>;

impl Job<'_> {
    fn run(&self) -> Vec<Outcome> {
        let mut results: Vec<Option<Outcome>> = self.units.iter().map(|_| None).collect();
        let mut candidates: Vec<Option<Candidate>> = Vec::with_capacity(self.units.len());
        for (unit, result) in self.units.iter().zip(&mut results) {
            match self.examine(unit) {
                Ok(candidate) => candidates.push(Some(candidate)),
                Err(error) => {
                    *result = Some(Err(error));
                    candidates.push(None);
                }
            }
        }
        let probed = self.probe(&mut candidates);
        if let Err(error) = probed {
            let fail = |result: Option<Outcome>| result.unwrap_or_else(|| Err(error.clone()));
            return results.into_iter().map(fail).collect();
        }
        let tasks = self.tasks(&candidates);
        let done = Mutex::new(&mut results);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcomes = self.batch(task, &candidates);
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                for (index, outcome) in outcomes {
                    done[index] = Some(outcome);
                }
            }
        };
        let threads = self.compiler.pool.jobs().min(tasks.len());
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        let missing = || {
            let text = "was not compiled".to_owned();
            Err(CompileError::new(CompileErrorKind::Unavailable, "", None, text))
        };
        results.into_iter().map(|r| r.unwrap_or_else(missing)).collect()
    }

    /// Checks that need no compiler.
    fn examine(&self, unit: &Unit) -> Result<Candidate, CompileError> {
        let reject = |line, message| CompileError::new(CompileErrorKind::Rejected, &unit.file, line, message);
        for kernel in &unit.kernels {
            if !batch::is_name_expression(kernel) {
                return Err(reject(None, format!("`{kernel}` is not the name of a kernel")));
            }
        }
        if unit.source.contains('\0') {
            return Err(reject(None, "the source contains a NUL byte".into()));
        }
        let lexed = lex(&unit.source);
        let roots = Roots {
            bundled: include_roots(self.compiler.pool.install()),
            given: self.dirs.clone(),
            unconfined: self.compiler.unconfined,
        };
        includes::check(&lexed, &roots).map_err(|refusal| reject(Some(refusal.line), refusal.message))?;
        let own_define = |shape: &Shape| self.options.defines.iter().any(|(n, _)| shape.macros.contains(n));
        let shape = analyse(&lexed).ok().filter(|shape| !own_define(shape));
        Ok(Candidate { shape, shared: vec![] })
    }

    /// Finds out which names of the candidates exist outside them: functions stay overloads of what is there, and a
    /// unit that redefines a macro is compiled alone.
    fn probe(&self, candidates: &mut [Option<Candidate>]) -> Result<(), CompileError> {
        const NAMES_PER_CALL: usize = 64;
        let key = |includes: &[String]| format!("{:?}{:?}", includes, self.flags);
        #[derive(Default)]
        struct Wanted {
            includes: Vec<String>,
            functions: Vec<String>,
            macros: Vec<String>,
        }
        let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
        let known = self.compiler.known.lock().unwrap_or_else(PoisonError::into_inner);
        for shape in candidates.iter().flatten().filter_map(|c| c.shape.as_ref()) {
            let key = key(&shape.includes);
            let entry = wanted.entry(key.clone()).or_default();
            entry.includes.clone_from(&shape.includes);
            let is_new = |name: &str, function| {
                !known.contains_key(&(key.clone(), Names { name: name.to_owned(), function }))
            };
            for name in shape.functions.union(&shape.names) {
                if !entry.functions.contains(name) && is_new(name, true) {
                    entry.functions.push(name.clone());
                }
            }
            for name in &shape.macros {
                if prelude::macro_body(name).is_none() && !entry.macros.contains(name) && is_new(name, false)
                {
                    entry.macros.push(name.clone());
                }
            }
        }
        drop(known);
        for (key, Wanted { includes, functions, macros }) in &wanted {
            let chunks = functions
                .chunks(NAMES_PER_CALL)
                .map(|f| (f, &[][..]))
                .chain(macros.chunks(NAMES_PER_CALL).map(|m| (&[][..], m)));
            for (functions, macros) in chunks {
                let probe = Probe::new(includes, functions, macros);
                let answer = self.call(&probe.program, "probe.cu", vec![], true);
                let log = match answer {
                    Ok((log, _)) => log,
                    Err(CallError::Setup(error)) => {
                        let kind = CompileErrorKind::Unavailable;
                        return Err(CompileError::new(kind, "", None, error.to_string()));
                    }
                    // Without an answer nothing is known: those units are compiled alone.
                    Err(_) => continue,
                };
                let mut known = self.compiler.known.lock().unwrap_or_else(PoisonError::into_inner);
                for (name, exists) in probe.read(&log) {
                    let function = functions.contains(&name);
                    known.insert((key.clone(), Names { name, function }), exists);
                }
            }
        }
        let known = self.compiler.known.lock().unwrap_or_else(PoisonError::into_inner);
        for candidate in candidates.iter_mut().flatten() {
            let Some(shape) = &candidate.shape else { continue };
            let key = key(&shape.includes);
            let ask = |name: &String, function| {
                known.get(&(key.clone(), Names { name: name.clone(), function })).copied()
            };
            let functions: Vec<(&String, Option<bool>)> =
                shape.functions.iter().map(|f| (f, ask(f, true))).collect();
            let macros_free =
                shape.macros.iter().all(|m| prelude::macro_body(m).is_some() || ask(m, false) == Some(false));
            // A type or value that exists outside already is the compiler's to judge.
            let names_free =
                shape.names.iter().all(|n| shape.functions.contains(n) || ask(n, true) == Some(false));
            if !macros_free || !names_free || functions.iter().any(|(_, answer)| answer.is_none()) {
                candidate.shape = None;
                continue;
            }
            candidate.shared =
                functions.into_iter().filter(|(_, a)| *a == Some(true)).map(|(f, _)| f.clone()).collect();
        }
        Ok(())
    }

    /// Groups of unit indices that go into one call each.
    fn tasks(&self, candidates: &[Option<Candidate>]) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
        let mut alone = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            match candidate {
                Some(Candidate { shape: Some(shape), .. }) => {
                    groups.entry(shape.includes.clone()).or_default().push(index);
                }
                Some(_) => alone.push(vec![index]),
                None => {}
            }
        }
        let max = usize::try_from(self.compiler.pool.limits.batch_units).unwrap_or(usize::MAX);
        let mut tasks = Vec::new();
        for group in groups.values() {
            let ranges = batches(group.len(), max, self.compiler.pool.jobs());
            tasks.extend(ranges.into_iter().map(|range| group[range].to_vec()));
        }
        tasks.extend(alone);
        tasks
    }

    /// One NVRTC call: the log, and what it made if it succeeded.
    fn call(
        &self,
        program: &str,
        file: &str,
        names: Vec<String>,
        check_only: bool,
    ) -> Result<(String, Option<Output>), CallError> {
        let request = CompileRequest {
            source: program.to_owned(),
            file_name: batch::label(file),
            options: self.flags.clone(),
            headers: prelude::HEADERS.iter().map(|h| ((*h).to_owned(), "\n".to_owned())).collect(),
            names,
            check_only,
        };
        let compiled = self.compiler.pool.compile(&self.dirs, request)?;
        Ok((compiled.log, compiled.output))
    }

    /// Compiles the units of one task; falls back until each has its own result.
    fn batch(&self, task: &[usize], candidates: &[Option<Candidate>]) -> Vec<(usize, Outcome)> {
        let mut done = Vec::with_capacity(task.len());
        let mut left = task.to_vec();
        let alone = |index: usize| (index, self.alone(&self.units[index]));
        while left.len() > 1 {
            let mut parts = Vec::with_capacity(left.len());
            for &index in &left {
                let Some(Candidate { shape: Some(shape), shared }) = &candidates[index] else { continue };
                let unit = &self.units[index];
                parts.push(Part {
                    source: &unit.source,
                    file: &unit.file,
                    shape,
                    shared_names: shared.iter().map(String::as_str).collect(),
                    kernels: &unit.kernels,
                });
            }
            let names: Vec<String> = parts
                .iter()
                .enumerate()
                .flat_map(|(at, part)| {
                    part.kernels.iter().map(move |k| batch::name_expression(at, k, part.shape))
                })
                .collect();
            match self.call(&batch::program(&parts), "batch.cu", names, false) {
                Ok((_, Some(output))) => {
                    let ptx: Arc<str> = batch::clean_ptx(&output.ptx).into();
                    let mut lowered = output.kernels.into_iter();
                    for index in left {
                        let unit = &self.units[index];
                        let own: Vec<_> = lowered.by_ref().take(unit.kernels.len()).collect();
                        if own.len() < unit.kernels.len() || own.iter().any(|k| !k.unresolved.is_empty()) {
                            // The unit's own messages come from compiling it alone.
                            done.push(alone(index));
                            continue;
                        }
                        let mut image = Image::empty(ptx.clone());
                        for (name, kernel) in unit.kernels.iter().zip(own) {
                            image.entries.insert(name.clone(), kernel.entry);
                            image.identity.insert(name.clone(), kernel.identity);
                        }
                        done.push((index, Ok(image)));
                    }
                    return done;
                }
                Ok((log, None)) => {
                    let guilty = batch::guilty(&log, left.len());
                    if guilty.is_empty() {
                        break;
                    }
                    // A guilty unit gets its verdict and its messages from being compiled alone.
                    let mut rest = Vec::new();
                    for (at, index) in left.into_iter().enumerate() {
                        if guilty.contains(&at) {
                            done.push(alone(index));
                        } else {
                            rest.push(index);
                        }
                    }
                    left = rest;
                }
                Err(_) => break,
            }
        }
        done.extend(left.into_iter().map(alone));
        done
    }

    /// Compiles a unit on its own, as its text stands.
    fn alone(&self, unit: &Unit) -> Outcome {
        let fail = |kind, message| Err(CompileError::new(kind, &unit.file, None, message));
        match self.call(&batch::alone(&unit.source, &unit.file), &unit.file, unit.kernels.clone(), false) {
            Ok((log, Some(output))) => {
                let mut image = Image::empty(batch::clean_ptx(&output.ptx).into());
                image.log = log;
                for (name, kernel) in unit.kernels.iter().zip(output.kernels) {
                    if let Some(missing) = kernel.unresolved.first() {
                        let message = format!("kernel `{name}` needs `{missing}`, which nothing defines");
                        return fail(CompileErrorKind::Rejected, message);
                    }
                    image.entries.insert(name.clone(), kernel.entry);
                    image.identity.insert(name.clone(), kernel.identity);
                }
                Ok(image)
            }
            Ok((log, None)) => Err(CompileError::from_log(&log, unit)),
            Err(CallError::TimedOut) => {
                let seconds = self.compiler.pool.limits.wall_seconds;
                fail(CompileErrorKind::TimedOut, format!("the compiler took longer than {seconds} s"))
            }
            Err(CallError::Died(how)) => {
                let kind = if how.contains("processor time") {
                    CompileErrorKind::TimedOut
                } else {
                    CompileErrorKind::Crashed
                };
                fail(kind, format!("the compiler {how}"))
            }
            Err(CallError::Failed(how)) => {
                fail(CompileErrorKind::Crashed, format!("the compiler failed: {how}"))
            }
            Err(CallError::Setup(error)) => fail(CompileErrorKind::Unavailable, error.to_string()),
        }
    }
}

impl Image {
    fn empty(ptx: Arc<str>) -> Self {
        Self { ptx, entries: BTreeMap::new(), identity: BTreeMap::new(), log: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_every_unit_once_and_keep_the_limit() {
        for (count, max, jobs, expected) in
            [(0, 16, 2, 0), (1, 16, 2, 1), (16, 16, 2, 2), (33, 16, 2, 4), (5, 1, 3, 5)]
        {
            let ranges = batches(count, max, jobs);
            assert_eq!(ranges.len(), expected, "{count} {max} {jobs}");
            let flat: Vec<usize> = ranges.iter().cloned().flatten().collect();
            assert_eq!(flat, (0..count).collect::<Vec<_>>());
            assert!(ranges.iter().all(|r| r.len() <= max));
        }
    }

    #[test]
    fn lines_of_a_log_are_those_of_the_unit() {
        let unit = Unit { name: "u".into(), file: "k.cu".into(), source: String::new(), kernels: vec![] };
        let log = "k.cu(7): error: identifier \"x\" is undefined\n  x\n  ^\n\n/a/b.h(3): error #20-D: y\n\nptxas fatal   : z\n";
        let error = CompileError::from_log(log, &unit);
        let lines: Vec<_> = error.lines.iter().map(|l| (l.line, l.message.as_str())).collect();
        assert_eq!(lines, [(Some(7), "identifier \"x\" is undefined"), (None, "y"), (None, "z")]);
        assert_eq!(error.to_string(), "line 7: identifier \"x\" is undefined (and 2 more)");
    }
}
