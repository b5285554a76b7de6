//! The folder of a release: put together beside the place it is for, and moved there when it is whole.
//!
//! `SHA256SUMS` names every file. A folder whose files are those of an earlier release is replaced; one that holds
//! anything else is refused.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::ReleaseError;

/// The file that says what a release is.
pub const MARKER: &str = "release.json";
/// Digests of every file, as `sha256sum -c` reads them.
pub const SUMS: &str = "SHA256SUMS";
/// Folders below a release that are looked into.
const MAX_DEPTH: usize = 8;

/// A file that is written once, from beginning to end, and hashed on the way.
pub struct HashedFile {
    path: PathBuf,
    name: String,
    inner: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl HashedFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for HashedFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.hash.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A release in the making. What is not finished is removed.
pub struct Staging {
    /// Where it is to be.
    target: PathBuf,
    /// Where it is put together.
    stage: PathBuf,
    sums: BTreeMap<String, (String, u64)>,
    /// Held while this process works here.
    _lock: File,
    marker: (&'static str, &'static str),
    lock_path: PathBuf,
    finished: bool,
}

impl Staging {
    /// Begins a release that is to be at `target`, with a `file` whose `kind` says what the folder is.
    ///
    /// # Errors
    /// `Folder` where something else is there or another export is at work; `CannotWrite`.
    pub fn begin(target: &Path, file: &'static str, kind: &'static str) -> Result<Staging, ReleaseError> {
        let marker = (file, kind);
        // Behind a link, the folder that it names is replaced, and not the link.
        let target = match fs::canonicalize(target) {
            Ok(real) => real,
            Err(_) => std::path::absolute(target).map_err(|e| ReleaseError::write(target, e))?,
        };
        replaceable(&target, marker)?;
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(refused(&target, "not a folder that a release can be; name a new one"));
        };
        fs::create_dir_all(parent).map_err(|e| ReleaseError::write(parent, e))?;
        let beside = |what: &str| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(what);
            parent.join(hidden)
        };
        let (stage, lock_path) = (beside(".assay-export"), beside(".assay-export.lock"));
        let lock = File::create(&lock_path).map_err(|e| ReleaseError::write(&lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(refused(&target, "another export is writing it; wait for it"));
            }
            Err(TryLockError::Error(e)) => return Err(ReleaseError::write(&lock_path, e)),
        }
        // What a killed export left: nobody works on it, as the lock says.
        remove(&stage)?;
        fs::create_dir(&stage).map_err(|e| ReleaseError::write(&stage, e))?;
        Ok(Staging { target, stage, sums: BTreeMap::new(), _lock: lock, marker, lock_path, finished: false })
    }

    /// Begins a file; `name` is its path in the release, with `/` between folders.
    ///
    /// # Errors
    /// `CannotWrite`; `Internal` for a name that leads elsewhere or is taken.
    pub fn create(&mut self, name: &str) -> Result<HashedFile, ReleaseError> {
        let inside = Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
        if name.is_empty() || !inside || self.sums.contains_key(name) {
            return Err(ReleaseError::Internal(format!("`{name}` is no new file of a release")));
        }
        let path = self.stage.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| ReleaseError::write(folder, e))?;
        }
        let file = File::create_new(&path).map_err(|e| ReleaseError::write(&path, e))?;
        Ok(HashedFile {
            path,
            name: name.to_owned(),
            inner: BufWriter::new(file),
            hash: Sha256::new(),
            bytes: 0,
        })
    }

    /// Ends a file.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn close(&mut self, mut file: HashedFile) -> Result<(), ReleaseError> {
        file.flush().map_err(|e| ReleaseError::write(&file.path, e))?;
        let digest: String = file.hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        self.sums.insert(file.name, (digest, file.bytes));
        Ok(())
    }

    /// Writes a whole file.
    ///
    /// # Errors
    /// As [`Staging::create`].
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), ReleaseError> {
        self.write_bytes(name, text.as_bytes())
    }

    /// Writes a whole file.
    ///
    /// # Errors
    /// As [`Staging::create`].
    pub fn write_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), ReleaseError> {
        let mut file = self.create(name)?;
        file.write_all(bytes).map_err(|e| ReleaseError::write(&file.path, e))?;
        self.close(file)
    }

    /// Where a file of that name is while it is put together.
    pub fn path(&self, name: &str) -> PathBuf {
        self.stage.join(name)
    }

    /// Files so far, and their bytes.
    pub fn size(&self) -> (u64, u64) {
        (self.sums.len() as u64, self.sums.values().map(|(_, bytes)| bytes).sum())
    }

    /// Writes `SHA256SUMS` and moves the folder to its place.
    ///
    /// # Errors
    /// `CannotWrite`, with the folder that was there still in its place; `Folder` where somebody put something there
    /// meanwhile.
    pub fn finish(mut self) -> Result<PathBuf, ReleaseError> {
        let mut lines = String::new();
        for (name, (digest, _)) in &self.sums {
            lines.push_str(&format!("{digest}  {name}\n"));
        }
        self.write(SUMS, &lines)?;
        replaceable(&self.target, self.marker)?;
        let old = self.stage.with_extension("assay-old");
        remove(&old)?;
        let there = self.target.exists();
        let fault = |path: &Path, e: io::Error| ReleaseError::write(path, e);
        if there {
            fs::rename(&self.target, &old).map_err(|e| fault(&self.target, e))?;
        }
        if let Err(e) = fs::rename(&self.stage, &self.target) {
            if there {
                let _ = fs::rename(&old, &self.target);
            }
            return Err(fault(&self.target, e));
        }
        self.finished = true;
        if there {
            remove(&old)?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.stage);
        }
        let _ = fs::remove_file(&self.lock_path);
    }
}

fn refused(path: &Path, what: impl Into<String>) -> ReleaseError {
    ReleaseError::Folder { path: path.to_owned(), what: what.into() }
}

fn remove(folder: &Path) -> Result<(), ReleaseError> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ReleaseError::write(folder, e)),
        _ => Ok(()),
    }
}

/// Nothing there, an empty folder, or an earlier release and nothing else?
fn replaceable(target: &Path, (file, kind): (&str, &str)) -> Result<(), ReleaseError> {
    let meta = match fs::metadata(target) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(refused(target, format!("cannot be read: {e}"))),
    };
    if !meta.is_dir() {
        return Err(refused(target, "not a folder"));
    }
    let mut found = Vec::new();
    files(target, "", 0, &mut found).map_err(|e| refused(target, format!("cannot be read: {e}")))?;
    if found.is_empty() {
        return Ok(());
    }
    let marker = fs::read_to_string(target.join(file)).unwrap_or_default();
    let stated = serde_json::from_str::<serde_json::Value>(&marker).ok();
    let ours = stated.is_some_and(|v| v["kind"] == kind);
    if !ours {
        return Err(refused(target, "the folder is not empty and holds no earlier export; name another"));
    }
    let sums = fs::read_to_string(target.join(SUMS)).unwrap_or_default();
    let listed: std::collections::BTreeSet<&str> =
        sums.lines().filter_map(|l| l.split_once("  ").map(|(_, name)| name)).chain([SUMS]).collect();
    if let Some(other) = found.iter().find(|f| !listed.contains(f.as_str())) {
        return Err(refused(
            target,
            format!(
                "the folder holds `{other}`, which is not of the earlier export; move it or name another"
            ),
        ));
    }
    Ok(())
}

/// The files below a folder, with `/` between folders; a link is a file of its own.
fn files(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() && depth < MAX_DEPTH {
            files(&entry.path(), &format!("{name}/"), depth + 1, found)?;
        } else {
            found.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(target: &Path, text: &str) {
        let mut s = Staging::begin(target, MARKER, crate::KIND).unwrap();
        s.write(MARKER, &format!("{{\"kind\": \"{}\"}}", crate::KIND)).unwrap();
        s.write("a/b.txt", text).unwrap();
        s.finish().unwrap();
    }

    fn beside(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_release_replaces_an_earlier_one_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("release");
        made(&target, "one");
        made(&target, "two");
        assert_eq!(fs::read_to_string(target.join("a/b.txt")).unwrap(), "two");
        assert_eq!(beside(dir.path()), ["release"], "nothing is left beside it");

        fs::write(target.join("a/notes"), "mine").unwrap();
        let e = Staging::begin(&target, MARKER, crate::KIND).err().unwrap().to_string();
        assert!(e.contains("`a/notes`"), "{e}");
        assert_eq!(fs::read_to_string(target.join("a/b.txt")).unwrap(), "two");

        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("x"), "").unwrap();
        assert!(matches!(Staging::begin(&other, MARKER, crate::KIND), Err(ReleaseError::Folder { .. })));
        assert!(matches!(
            Staging::begin(&other.join("x"), MARKER, crate::KIND),
            Err(ReleaseError::Folder { .. })
        ));
    }

    #[test]
    fn what_is_not_finished_leaves_nothing_and_an_empty_folder_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("release");
        fs::create_dir(&target).unwrap();
        let mut s = Staging::begin(&target, MARKER, crate::KIND).unwrap();
        s.write("a", "x").unwrap();
        assert!(
            matches!(Staging::begin(&target, MARKER, crate::KIND), Err(ReleaseError::Folder { .. })),
            "one at a time"
        );
        drop(s);
        assert_eq!(beside(dir.path()), ["release"]);
        made(&target, "x");
        assert!(target.join(SUMS).is_file());
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut s = Staging::begin(&dir.path().join("release"), MARKER, crate::KIND).unwrap();
        for name in ["", "../x", "/x", "a/../../x"] {
            assert!(matches!(s.write(name, ""), Err(ReleaseError::Internal(_))), "{name}");
        }
    }
}
