//! `assay audit --kernelbench`: which files, which problems, and the oracle that they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use assay_problems::{OracleError, Problem};
use assay_torch::Settings;
use assay_torch::kernelbench::{File, FileFor, FileOracle, Generated, find_files};
use serde_json::Value;

use crate::cli::{AuditArgs, ExtentsArg};
use crate::commands::audit::{Chosen, Made, code_of, patterns};
use crate::commands::list;
use crate::commands::verify_ops::failure;
use crate::exit::Failure;
use crate::progress::Bar;

/// The files that are asked for, each with the problem that the catalogue, or a folder of `--problems`, has of its level
/// and number.
pub struct Asked {
    files: Vec<(File, Option<Problem>)>,
    /// The problems are folders of the user's: nothing takes their place.
    own: bool,
}

/// Finds the files.
///
/// # Errors
/// Bad input: no files, or none of a problem that was asked for.
pub fn find(path: &Path, args: &AuditArgs) -> Result<Asked, Failure> {
    if path.file_name().is_some_and(|n| n == "func_backward.py") {
        return Err(Failure::unsupported(format!(
            "`{}` asks for gradients, which no graph is exported of; `func_forward.py` beside it is the forward task",
            path.display()
        )));
    }
    let own = !args.problems.is_empty();
    // A file that is named is asked for, whatever its number.
    let named = !own && (path.is_file() || path.join("func_forward.py").is_file());
    let patterns = if named { Vec::new() } else { patterns(args) };
    let mut known: BTreeMap<String, Problem> =
        list::find_problems(&patterns)?.into_iter().map(|p| (p.key(), p)).collect();
    let files = if own {
        let mut levels: Vec<u32> = known.values().map(|p| p.level).collect();
        levels.dedup();
        find_files(path, &levels, &[]).map_err(failure)?
    } else {
        let levels: &[u32] = if args.levels.is_empty() { &[1, 2] } else { &args.levels };
        find_files(path, levels, &args.ids).map_err(failure)?
    };
    let every = named || args.all || !args.levels.is_empty() || !args.ids.is_empty();
    let mut out = Vec::new();
    for file in files {
        let problem = known.remove(&file.key());
        if problem.is_some() || (every && !own) {
            out.push((file, problem));
        }
    }
    if let Some(key) = known.keys().find(|_| own) {
        return Err(Failure::bad_input(format!("`{}` has no file for problem {key}", path.display())));
    }
    if out.is_empty() {
        return Err(Failure::unsupported("no file has a substrate"));
    }
    Ok(Asked { files: out, own })
}

/// A problem for each file, and the files as their oracle: the catalogue's where it is the file's, else one that is made
/// from the file's module. A run that is continued has the problems that it had.
///
/// # Errors
/// No PyTorch, a file that cannot be read, an interrupt; unsupported and the like where no file has a substrate.
pub fn choose<'a>(
    asked: Asked,
    args: &AuditArgs,
    folder: &Path,
    bar: &Bar,
    interrupted: &'a AtomicBool,
) -> Result<(Chosen, FileOracle<'a>), Failure> {
    let known = asked.files.iter().filter_map(|(f, p)| {
        let file: FileFor = f.path.clone().into();
        p.as_ref().map(|p| (p.key(), file))
    });
    let mut oracle = oracle(args, &known.collect(), interrupted)?;
    let before = if args.resume { problems_of(folder) } else { BTreeSet::new() };
    let official = args.extents == ExtentsArg::Official;
    let work = (!official).then_some(args.work);
    let mut chosen = Chosen::default();
    let total = asked.files.len() as u64;
    bar.begin("files", total);
    for (n, (file, problem)) in asked.files.into_iter().enumerate() {
        bar.at(n as u64, total);
        bar.say(&file.name);
        let mut why = None;
        // The official extents of a task are its own, not those of the catalogue's problem of its number.
        let own_extents = official && file.is_task() && !asked.own;
        let problem = problem.filter(|p| {
            if own_extents {
                oracle.leave(&p.key());
            }
            !own_extents
        });
        if let Some(problem) = problem {
            let key = problem.key();
            // Desk extents, whatever the run's are: how a file is taken holds at both, and is proven by numbers.
            let taken = if asked.own || before.contains(&key) { Ok(()) } else { oracle.takes(&problem) };
            match taken {
                Err(OracleError::Interrupted) => return Err(stopped(folder)),
                Err(e @ (OracleError::Unsupported(_) | OracleError::Refused(_))) => {
                    match oracle.generate(&file, work) {
                        Ok(made) => {
                            oracle.leave(&key);
                            why = Some(e.to_string());
                            add(&mut chosen, &file, made, why);
                        }
                        Err(OracleError::Interrupted) => return Err(stopped(folder)),
                        // The audit says of the catalogue's problem what is wrong with its file.
                        Err(no) => {
                            if let OracleError::Unsupported(what) = e {
                                let what = format!("{what}; and no substrate is generated from it: {no}");
                                oracle.refuse(&key, OracleError::Unsupported(what));
                            }
                            chosen.problems.push(problem);
                        }
                    }
                }
                // What else there is to say is said when its inputs are asked for.
                _ => chosen.problems.push(problem),
            }
            continue;
        }
        match oracle.generate(&file, work) {
            Ok(made) => add(&mut chosen, &file, made, why.take()),
            Err(OracleError::Interrupted) => return Err(stopped(folder)),
            Err(e) => chosen.without.push((said(&file), e)),
        }
    }
    bar.finish();
    if chosen.problems.is_empty() {
        let first = chosen.without.first();
        let what = first.map_or(String::new(), |(file, why)| format!(": {file}: {why}"));
        let exit = first.map_or(crate::exit::Exit::Unsupported, |(_, why)| code_of(why));
        return Err(Failure { exit, message: format!("no file has a substrate{what}") });
    }
    Ok((chosen, oracle))
}

/// A file in messages.
fn said(file: &File) -> String {
    format!("{} ({})", file.name, file.key())
}

fn add(chosen: &mut Chosen, file: &File, made: Generated, why: Option<String>) {
    let Generated { problem, substrate, .. } = made;
    chosen.made.push(Made {
        file: said(file),
        key: problem.key(),
        name: format!("level{}/{}", file.level, substrate.problem.slug),
        substrate,
        why,
    });
    chosen.problems.push(problem);
}

fn stopped(folder: &Path) -> Failure {
    Failure {
        exit: crate::exit::Exit::Interrupted,
        message: format!("interrupted before the run in `{}` began", folder.display()),
    }
}

/// The problems of a run that was begun; none where that cannot be read, which opening the run will say.
fn problems_of(folder: &Path) -> BTreeSet<String> {
    let text = std::fs::read(folder.join("manifest.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_slice(&text).unwrap_or_default();
    let problems = manifest.get("problems").and_then(Value::as_object);
    problems.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

/// The files as oracle.
///
/// # Errors
/// No PyTorch, a file that cannot be read.
fn oracle<'a>(
    args: &AuditArgs,
    files: &BTreeMap<String, FileFor>,
    interrupted: &'a AtomicBool,
) -> Result<FileOracle<'a>, Failure> {
    let settings = Settings {
        python: args.python.clone(),
        // One, so that sums have one order whatever machine it is.
        threads: 1,
        seconds: args.timeout,
        memory: assay_sweep::backend::physical_memory().map(|b| b / 4 * 3),
    };
    let cache =
        args.cache.clone().unwrap_or_else(|| assay_sweep::environment::cache().with_file_name("references"));
    FileOracle::new(&settings, files, Some(cache), interrupted).map_err(failure)
}
