//! The problem files of a checkout, and the extents at which a CPU affords them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::TorchError;

/// Extents by file: module-level names of the benchmark's files and values that a CPU affords.
const DESK: &str = include_str!("desk.json");

/// A problem file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The level.
    pub level: u32,
    /// The number within it.
    pub id: u32,
    /// The file's name without its ending, `23_Softmax`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl File {
    /// `1/23`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.level, self.id)
    }

    /// Whether it is a task of robust-kbench.
    pub fn is_task(&self) -> bool {
        self.path.file_name().is_some_and(|n| n == "func_forward.py")
    }

    /// The name of a problem that is made from it. Tasks of two levels may have one name.
    pub fn title(&self) -> String {
        if self.level > 0 && self.is_task() {
            format!("level_{} {}", self.level, self.name)
        } else {
            self.name.clone()
        }
    }
}

/// The table of desk extents.
pub(super) fn desk() -> Result<BTreeMap<String, BTreeMap<String, Value>>, TorchError> {
    serde_json::from_str(DESK).map_err(|e| TorchError::Bad(format!("desk.json: {e}")))
}

/// The problem files below `dir`, a checkout of KernelBench or its folder of levels, by level and number; all levels from
/// 1 to 3 where none is given, all numbers where none is.
///
/// # Errors
/// `Bad` where there is no such level, no file, or no file of a number that was asked for.
pub fn find(dir: &Path, levels: &[u32], ids: &[u32]) -> Result<Vec<File>, TorchError> {
    let levels = if levels.is_empty() { &[1, 2, 3][..] } else { levels };
    let root = [dir.join("KernelBench"), dir.to_path_buf()]
        .into_iter()
        .find(|d| d.join("level1").is_dir() || levels.iter().any(|l| d.join(format!("level{l}")).is_dir()))
        .ok_or_else(|| {
            TorchError::Bad(format!("`{}` has neither `KernelBench/level1` nor `level1`", dir.display()))
        })?;
    let mut out = Vec::new();
    for &level in levels {
        let folder = root.join(format!("level{level}"));
        let entries = std::fs::read_dir(&folder).map_err(|error| TorchError::Io {
            action: "read",
            path: folder.clone(),
            error,
        })?;
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let id = name.split_once('_').and_then(|(n, _)| n.parse::<u32>().ok());
            if let Some(id) = id
                && path.extension().is_some_and(|e| e == "py")
                && (ids.is_empty() || ids.contains(&id))
            {
                out.push(File { level, id, name, path });
            }
        }
    }
    if let Some(missing) = ids.iter().find(|i| !out.iter().any(|f| f.id == **i)) {
        return Err(TorchError::Bad(format!(
            "`{}` has no problem {missing} in these levels",
            root.display()
        )));
    }
    if out.is_empty() {
        return Err(TorchError::Bad(format!("`{}` has no problem files in these levels", root.display())));
    }
    out.sort_by_key(|f| (f.level, f.id));
    Ok(out)
}

/// As [`find`], and beside it what `dir` may be else: a checkout of robust-kbench or its folder of tasks
/// (`tasks/kernelbench/level_N/task_M`), one problem file, one task folder. A file that lies in no folder of a level, or
/// has no number, is of level 0, where no catalogue has problems.
///
/// # Errors
/// As [`find`].
pub fn find_files(dir: &Path, levels: &[u32], ids: &[u32]) -> Result<Vec<File>, TorchError> {
    let task = |folder: &Path| folder.join("func_forward.py").is_file();
    if dir.is_file() || task(dir) {
        return Ok(vec![placed(dir)]);
    }
    let tasks = [dir.join("tasks/kernelbench"), dir.join("kernelbench"), dir.to_path_buf()]
        .into_iter()
        .find(|d| d.join("level_1").is_dir() || d.join("level_2").is_dir());
    let Some(root) = tasks else { return find(dir, levels, ids) };
    let mut out = Vec::new();
    for &level in levels {
        let folder = root.join(format!("level_{level}"));
        // Not every level has tasks.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|e| e.path()).filter(|p| task(p)) {
            let file = placed(&path);
            if file.level == level && (ids.is_empty() || ids.contains(&file.id)) {
                out.push(file);
            }
        }
    }
    if out.is_empty() {
        return Err(TorchError::Bad(format!("`{}` has no such tasks in these levels", root.display())));
    }
    out.sort_by_key(|f| (f.level, f.id));
    Ok(out)
}

/// A file or task folder by where it lies: `level1/23_Softmax.py`, `level_1/task_23`.
fn placed(path: &Path) -> File {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = if path.is_dir() { path.join("func_forward.py") } else { path };
    let is_task = path.file_name().is_some_and(|n| n == "func_forward.py");
    let named = if is_task { path.parent().map(Path::to_owned).unwrap_or_default() } else { path.clone() };
    let name = named.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = named.parent().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
    let level = folder.and_then(|f| f.strip_prefix("level")?.trim_start_matches('_').parse().ok());
    let id = if is_task {
        name.strip_prefix("task_").and_then(|n| n.parse().ok())
    } else {
        name.split_once('_').and_then(|(n, _)| n.parse().ok())
    };
    match (level, id) {
        (Some(level), Some(id)) => File { level, id, name, path },
        _ => File { level: 0, id: id.unwrap_or(1), name, path },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_a_checkout_by_level_and_number() {
        let dir = tempfile::tempdir().unwrap();
        let level = dir.path().join("KernelBench/level1");
        std::fs::create_dir_all(&level).unwrap();
        for name in ["19_ReLU.py", "2_Matmul.py", "notes.txt", "helper.py"] {
            std::fs::write(level.join(name), "").unwrap();
        }
        let names = |ids: &[u32]| {
            find(dir.path(), &[1], ids).map(|all| all.into_iter().map(|f| f.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["2_Matmul", "19_ReLU"]);
        assert_eq!(names(&[19]).unwrap(), ["19_ReLU"]);
        assert!(names(&[7]).unwrap_err().to_string().contains("no problem 7"));
        assert!(find(dir.path(), &[2], &[]).is_err());
        assert!(find(&dir.path().join("KernelBench"), &[1], &[]).is_ok());
        assert!(find(&level, &[1], &[]).unwrap_err().to_string().contains("neither"));
    }

    #[test]
    fn tasks_and_single_files_are_placed_by_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("tasks/kernelbench/level_1/task_23");
        let level = dir.path().join("level2");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::create_dir_all(&level).unwrap();
        for file in [task.join("func_forward.py"), level.join("12_Gemm.py"), dir.path().join("mine.py")] {
            std::fs::write(file, "").unwrap();
        }
        let keys = |path: &Path| {
            let all = find_files(path, &[1, 2], &[]).unwrap();
            all.iter().map(|f| format!("{} {}", f.key(), f.name)).collect::<Vec<_>>()
        };
        assert_eq!(keys(dir.path()), ["1/23 task_23"]);
        assert_eq!(keys(&task), ["1/23 task_23"]);
        assert_eq!(keys(&level.join("12_Gemm.py")), ["2/12 12_Gemm"]);
        assert_eq!(keys(&dir.path().join("mine.py")), ["0/1 mine"]);
        assert!(find_files(dir.path(), &[3], &[]).is_err());
    }

    #[test]
    fn the_table_of_desk_extents_names_problems_and_positive_extents() {
        let table = desk().unwrap();
        assert!(table.len() > 200);
        for (key, extents) in &table {
            let (level, id) = key.split_once('/').unwrap();
            assert!((1..=3).contains(&level.parse::<u32>().unwrap()) && id.parse::<u32>().is_ok(), "{key}");
            let size = |v: &Value| v.as_u64().is_some_and(|n| n > 0);
            let sizes =
                |v: &Value| size(v) || v.as_array().is_some_and(|a| !a.is_empty() && a.iter().all(size));
            assert!(!extents.is_empty() && extents.values().all(sizes), "{key}");
        }
    }
}
