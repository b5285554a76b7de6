//! One Python environment for each version of PyTorch, made with uv (boundary paper, §3 "Environment").

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::SweepError;

/// The interpreter of an environment with exactly `torch==version`, made below `root` where it is not there yet. An
/// environment counts as made when its install ended well: a half-made one is made again.
///
/// # Errors
/// A version that is none, no uv, an install that fails (with uv's words).
pub fn python_with_torch(root: &Path, version: &str) -> Result<PathBuf, SweepError> {
    // The version becomes part of a path and of a requirement.
    let plain = !version.is_empty()
        && version.len() <= 40
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+'));
    if !plain {
        return Err(SweepError::bad(format!("`{version}` is not a version of PyTorch such as 2.14.0")));
    }
    let dir = root.join(format!("torch-{version}"));
    let python = if cfg!(windows) { dir.join("Scripts/python.exe") } else { dir.join("bin/python") };
    let mark = dir.join(".assay-complete");
    if mark.is_file() && python.is_file() {
        return Ok(python);
    }
    std::fs::create_dir_all(root).map_err(SweepError::writing(root))?;
    uv(&["venv", "--clear", "--quiet"], &dir)?;
    let requirement = format!("torch=={version}");
    let out = Command::new("uv")
        .args(["pip", "install", "--quiet", "--python"])
        .arg(&python)
        .args([requirement.as_str(), "numpy"])
        .stdin(Stdio::null())
        .output()
        .map_err(missing)?;
    if !out.status.success() {
        return Err(SweepError::bad(format!(
            "uv cannot install {requirement}: {}",
            String::from_utf8_lossy(&out.stderr).trim()
        )));
    }
    std::fs::write(&mark, &requirement).map_err(SweepError::writing(&mark))?;
    Ok(python)
}

fn uv(args: &[&str], dir: &Path) -> Result<(), SweepError> {
    let out = Command::new("uv").args(args).arg(dir).stdin(Stdio::null()).output().map_err(missing)?;
    if out.status.success() {
        return Ok(());
    }
    Err(SweepError::bad(format!("uv {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim())))
}

fn missing(e: std::io::Error) -> SweepError {
    SweepError::bad(format!(
        "--torch makes environments with uv, which cannot be started ({e}); install uv, or give the interpreter of an \
         environment of your own with --python"
    ))
}

/// Where environments are kept: below the user's cache folder.
pub fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("assay").join("torch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_a_path_or_an_option_is_refused() {
        for bad in ["", "../x", "-r", "2.1; rm", "latest", "2.1/..", "2 1"] {
            let e = python_with_torch(Path::new("/nonexistent"), bad).unwrap_err();
            assert!(e.to_string().contains("is not a version"), "{bad}: {e}");
        }
    }
}
