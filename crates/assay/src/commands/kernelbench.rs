//! `assay audit --kernelbench`: which files, which problems, and the oracle that they are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use assay_problems::Problem;
use assay_torch::Settings;
use assay_torch::kernelbench::{File, FileFor, FileOracle, find_files};

use crate::cli::AuditArgs;
use crate::commands::audit::{Chosen, patterns};
use crate::commands::list;
use crate::commands::verify_ops::failure;
use crate::exit::Failure;

/// The files that are asked for, each with its problem: the catalogue's of the same level and number, or one of
/// `--problems`.
///
/// # Errors
/// Bad input: no files, or none of a problem that was asked for.
pub fn choose(path: &Path, args: &AuditArgs) -> Result<Chosen, Failure> {
    let asked = list::find_problems(&patterns(args))?;
    let mut known: BTreeMap<String, Problem> = asked.into_iter().map(|p| (p.key(), p)).collect();
    let levels: &[u32] = if args.levels.is_empty() { &[1, 2] } else { &args.levels };
    let mut out = Chosen::default();
    let own = !args.problems.is_empty();
    let files: Vec<File> = if own {
        let mut levels: Vec<u32> = known.values().map(|p| p.level).collect();
        levels.dedup();
        find_files(path, &levels, &[]).map_err(failure)?
    } else {
        find_files(path, levels, &args.ids).map_err(failure)?
    };
    let every =
        args.all || !args.levels.is_empty() || !args.ids.is_empty() || files.iter().any(|f| f.level == 0);
    for file in files {
        let key = file.key();
        match known.remove(&key) {
            Some(problem) => {
                out.problems.push(problem);
                out.files.insert(key, file.path.into());
            }
            None if own || !every => {}
            None => out.without.push((
                format!("{} ({key})", file.name),
                "the catalogue has no problem of this level and number".into(),
            )),
        }
    }
    if let Some(key) = known.keys().find(|_| own) {
        return Err(Failure::bad_input(format!("`{}` has no file for problem {key}", path.display())));
    }
    if out.problems.is_empty() {
        let first = out.without.first().map_or(String::new(), |(file, why)| format!(": {file}: {why}"));
        return Err(Failure::unsupported(format!("no file has a substrate{first}")));
    }
    Ok(out)
}

/// The files as oracle.
///
/// # Errors
/// No PyTorch, a file that cannot be read.
pub fn oracle<'a>(
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
