//! Where a problem's files come from: a folder on disk, or the catalogue inside the binary.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::LoadError;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A problem's file is text written by hand; whatever is larger is something else.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// A problem's folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Folder {
    Disk(PathBuf),
    /// Path within the embedded catalogue, `level1/19_relu`.
    Embedded(String),
}

impl Folder {
    /// How messages call it.
    pub fn path(&self) -> PathBuf {
        match self {
            Folder::Disk(p) => p.clone(),
            Folder::Embedded(p) => Path::new("<built-in>").join(p),
        }
    }

    /// Its last part.
    pub fn slug(&self) -> String {
        let path = match self {
            // `.` and `..` have no name of their own.
            Folder::Disk(p) => p.canonicalize().unwrap_or_else(|_| p.clone()),
            Folder::Embedded(p) => PathBuf::from(p),
        };
        path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }

    /// The text of one of its files.
    pub fn read(&self, name: &'static str) -> Result<String, LoadError> {
        match self {
            Folder::Disk(dir) => {
                let file = dir.join(name);
                if file.symlink_metadata().is_err() {
                    return Err(LoadError::Missing { dir: dir.clone(), name });
                }
                read_text(&file)
            }
            Folder::Embedded(dir) => {
                let found = embedded_file(&format!("{dir}/{name}"));
                found.map(str::to_owned).ok_or(LoadError::Missing { dir: self.path(), name })
            }
        }
    }
}

/// The text of a file of the embedded catalogue.
pub(crate) fn embedded_file(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(p, _)| *p == path).map(|(_, text)| *text)
}

/// The paths of the embedded problems' folders, sorted.
pub(crate) fn embedded_problems() -> Vec<String> {
    FILES.iter().filter_map(|(path, _)| path.strip_suffix("/problem.toml")).map(str::to_owned).collect()
}

/// Reads a regular file of bounded size.
///
/// # Errors
/// `Unreadable` for a special file, a file above [`MAX_FILE_BYTES`], text that is not UTF-8, or what the system
/// refuses.
pub(crate) fn read_text(file: &Path) -> Result<String, LoadError> {
    let unusable = |why: String| LoadError::Unreadable { file: file.to_owned(), why };
    // The kind first: opening a pipe would wait for a writer.
    let meta = file.metadata().map_err(|e| unusable(e.to_string()))?;
    if !meta.is_file() {
        return Err(unusable("it is no regular file".to_owned()));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(unusable(format!("it has {} bytes, above the limit of {MAX_FILE_BYTES}", meta.len())));
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|e| unusable(e.to_string()))?;
    // The file may have grown since.
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| unusable(e.to_string()))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(unusable(format!("it is above the limit of {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|e| unusable(format!("it is not UTF-8 (byte {})", e.utf8_error().valid_up_to())))
}
