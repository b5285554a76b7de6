//! Finding problems: folders, folders of folders, globs and numbers, in the built-in catalogue or on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::LoadError;
use crate::folder::{Folder, embedded_problems};
use crate::load::load_folder;
use crate::problem::Problem;

/// The fourteen problems that an audit takes without being told which, as (level, id).
pub const SKELETON: [(u32, u32); 14] = [
    (1, 1),
    (1, 4),
    (1, 19),
    (1, 23),
    (1, 26),
    (1, 36),
    (1, 40),
    (1, 42),
    (1, 47),
    (1, 51),
    (1, 57),
    (1, 63),
    (1, 89),
    (2, 12),
];

/// Folders below a folder that are searched for problems.
const MAX_DEPTH: usize = 4;
/// Folders that one pattern may name.
const MAX_FOLDERS: usize = 20_000;

/// Where the built-in catalogue is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A folder of `level*/NAME` folders.
    Folder(PathBuf),
    /// Inside the binary.
    Embedded,
}

impl std::fmt::Display for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Root::Folder(p) => write!(f, "`{}`", p.display()),
            Root::Embedded => f.write_str("the built-in problems"),
        }
    }
}

impl Root {
    /// The catalogue's place: `ASSAY_PROBLEMS`, else `problems` in the working directory or above it, else the
    /// folder this crate was built beside, else the copy inside the binary.
    pub fn locate() -> Root {
        let env = std::env::var_os("ASSAY_PROBLEMS").filter(|v| !v.is_empty()).map(PathBuf::from);
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems");
        Self::choose(env, std::env::current_dir().ok().as_deref(), &built)
    }

    fn choose(env: Option<PathBuf>, cwd: Option<&Path>, built: &Path) -> Root {
        if let Some(dir) = env {
            return Root::Folder(dir);
        }
        let above = cwd.into_iter().flat_map(Path::ancestors).map(|d| d.join("problems"));
        if let Some(dir) = above.into_iter().find(|d| is_catalogue(d)) {
            return Root::Folder(dir);
        }
        if is_catalogue(built) {
            return Root::Folder(built.canonicalize().unwrap_or_else(|_| built.to_owned()));
        }
        Root::Embedded
    }

    /// The problems' folders, as paths relative to the root and as folders.
    fn folders(&self) -> Vec<(String, Folder)> {
        match self {
            Root::Embedded => {
                embedded_problems().into_iter().map(|p| (p.clone(), Folder::Embedded(p))).collect()
            }
            Root::Folder(dir) => below(dir)
                .into_iter()
                .map(|p| {
                    let relative = p.strip_prefix(dir).unwrap_or(&p);
                    let parts: Vec<_> =
                        relative.components().map(|c| c.as_os_str().to_string_lossy()).collect();
                    (parts.join("/"), Folder::Disk(p.clone()))
                })
                .collect(),
        }
    }
}

/// A folder called `problems` counts only if it has a problem in a `level*` folder.
fn is_catalogue(dir: &Path) -> bool {
    children(dir)
        .iter()
        .filter(|d| d.file_name().is_some_and(|n| n.to_string_lossy().starts_with("level")))
        .any(|level| children(level).iter().any(|d| d.join("problem.toml").is_file()))
}

/// The folders within a folder, sorted by name.
fn children(dir: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.is_dir())
        .take(MAX_FOLDERS)
        .collect();
    out.sort();
    out
}

/// Every folder with a `problem.toml` at or below `dir`.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut work = vec![(dir.to_owned(), 0)];
    let mut seen = 0;
    while let Some((d, depth)) = work.pop() {
        seen += 1;
        if seen > MAX_FOLDERS {
            break;
        }
        if d.join("problem.toml").symlink_metadata().is_ok() {
            out.push(d);
        } else if depth < MAX_DEPTH {
            work.extend(children(&d).into_iter().rev().map(|c| (c, depth + 1)));
        }
    }
    out
}

/// Loads the problems that the patterns name, each once, by level and id; no pattern means all of the root.
///
/// A pattern is, in this order: a folder with `problem.toml`; a folder of such folders; `1/23` (level and id);
/// a glob (`*`, `?`) or a path relative to the root, of which it may name a beginning (`level1`, `level1/19*`);
/// a glob of folders relative to the working directory.
///
/// # Errors
/// `NoMatch` for a pattern that names nothing, `Twice` for two folders with one level and id, and whatever
/// loading finds.
pub fn discover<S: AsRef<str>>(patterns: &[S], root: &Root) -> Result<Vec<Problem>, LoadError> {
    let mut found: BTreeMap<Folder, ()> = BTreeMap::new();
    let mut numbers: Vec<(u32, u32, &str)> = Vec::new();
    let all = root.folders();
    let no_match = |pattern: &str| LoadError::NoMatch {
        pattern: pattern.to_owned(),
        looked_in: format!("{root} and the working directory"),
    };
    if patterns.is_empty() {
        if all.is_empty() {
            return Err(no_match("*"));
        }
        found.extend(all.iter().map(|(_, f)| (f.clone(), ())));
    }
    for pattern in patterns {
        let pattern = pattern.as_ref();
        let path = Path::new(pattern);
        let mut folders: Vec<Folder> = Vec::new();
        if path.is_dir() {
            folders.extend(below(path).into_iter().map(Folder::Disk));
        }
        if folders.is_empty()
            && let Some((level, id)) = number(pattern)
        {
            numbers.push((level, id, pattern));
            continue;
        }
        if folders.is_empty() {
            let trimmed = pattern.trim_end_matches('/');
            folders.extend(all.iter().filter(|(p, _)| names(trimmed, p)).map(|(_, f)| f.clone()));
        }
        if folders.is_empty() {
            folders.extend(expand(pattern).iter().flat_map(|d| below(d)).map(Folder::Disk));
        }
        if folders.is_empty() {
            return Err(no_match(pattern));
        }
        found.extend(folders.into_iter().map(|f| (f, ())));
    }
    let mut problems = Vec::new();
    for folder in found.keys() {
        problems.push(load_folder(folder)?);
    }
    if !numbers.is_empty() {
        // Folder names begin with the id by convention, so only a few folders need to be read.
        for (level, id, pattern) in numbers {
            let begins = format!("level{level}/{id}_");
            let mut hit = false;
            for (_, folder) in all.iter().filter(|(p, _)| p.starts_with(&begins)) {
                let p = load_folder(folder)?;
                if (p.level, p.id) == (level, id) {
                    hit = true;
                    if !found.contains_key(folder) {
                        found.insert(folder.clone(), ());
                        problems.push(p);
                    }
                }
            }
            if !hit {
                return Err(no_match(pattern));
            }
        }
    }
    problems.sort_by_key(|p| (p.level, p.id));
    for pair in problems.windows(2) {
        if (pair[0].level, pair[0].id) == (pair[1].level, pair[1].id) {
            return Err(LoadError::Twice {
                level: pair[0].level,
                id: pair[0].id,
                first: pair[0].dir.clone(),
                second: pair[1].dir.clone(),
            });
        }
    }
    Ok(problems)
}

/// `1/23`.
fn number(pattern: &str) -> Option<(u32, u32)> {
    let (level, id) = pattern.split_once('/')?;
    Some((level.parse().ok()?, id.parse().ok()?))
}

/// Whether a pattern names a path or a beginning of it, part by part.
fn names(pattern: &str, path: &str) -> bool {
    let want: Vec<&str> = pattern.split('/').filter(|p| !p.is_empty()).collect();
    let have: Vec<&str> = path.split('/').collect();
    !want.is_empty() && want.len() <= have.len() && want.iter().zip(&have).all(|(w, h)| glob(w, h))
}

/// `*` and `?` within one part of a path; linear in practice, quadratic at worst.
fn glob(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < t.len() {
        if i < p.len() && (p[i] == '?' || (p[i] == t[j] && p[i] != '*')) {
            i += 1;
            j += 1;
        } else if i < p.len() && p[i] == '*' {
            star = Some((i, j));
            i += 1;
        } else if let Some((si, sj)) = star {
            star = Some((si, sj + 1));
            i = si + 1;
            j = sj + 1;
        } else {
            return false;
        }
    }
    p[i..].iter().all(|c| *c == '*')
}

/// The folders on disk that a glob names.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let mut at: Vec<PathBuf> =
        vec![if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::from(".") }];
    for part in pattern.split('/').filter(|p| !p.is_empty()) {
        let mut next = Vec::new();
        for dir in &at {
            if part.contains(['*', '?']) {
                let hits = children(dir)
                    .into_iter()
                    .filter(|c| c.file_name().is_some_and(|n| glob(part, &n.to_string_lossy())));
                next.extend(hits);
            } else if dir.join(part).is_dir() {
                next.push(dir.join(part));
            }
        }
        next.truncate(MAX_FOLDERS);
        at = next;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_parts_and_beginnings_of_paths() {
        for (pattern, path, want) in [
            ("level1/19*", "level1/19_relu", true),
            ("level1", "level1/19_relu", true),
            ("*/*relu", "level1/19_relu", true),
            ("level1/1?_relu", "level1/19_relu", true),
            ("level1/1*", "level2/12_gemm", false),
            ("level1/19_relu/x", "level1/19_relu", false),
            ("19_relu", "level1/19_relu", false),
            ("", "level1/19_relu", false),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
        ] {
            assert_eq!(names(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn the_root_is_looked_for_in_the_stated_order() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let built = dir.path().join("built");
        assert_eq!(Root::choose(None, Some(&deep), &built), Root::Embedded);
        // A folder that happens to have the name is no catalogue.
        std::fs::create_dir_all(dir.path().join("problems/level1/1_x")).unwrap();
        assert_eq!(Root::choose(None, Some(&deep), &built), Root::Embedded);
        std::fs::write(dir.path().join("problems/level1/1_x/problem.toml"), "").unwrap();
        assert_eq!(Root::choose(None, Some(&deep), &built), Root::Folder(dir.path().join("problems")));
        assert_eq!(Root::choose(Some("e".into()), Some(&deep), &built), Root::Folder("e".into()));
    }
}
