//! Finds NVRTC, or fetches it once: `ASSAY_NVRTC`, then the cache folder, then the wheel through pip.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::NvrtcError;
use crate::pool::{self, WorkerCommand};
use crate::protocol::{Answer, Request};

/// The NVRTC that results are made with.
pub const VERSION: &str = "13.5.37";
const PACKAGE: &str = "nvidia-cuda-nvrtc";
/// File that is written last: a folder without it is not used.
const MARKER: &str = "installed.json";

/// SHA-256 of the pinned wheel by processor.
const WHEELS: &[(&str, &str)] = &[
    ("x86_64", "86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc"),
    ("aarch64", "36e4fa2a8ada293f5693d308e531c196ab6f91cf7a0ff479bf96a537d43a6096"),
];

/// A usable NVRTC: the library, its version, and the headers it brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// Path of the shared library. The builtins library lies beside it.
    pub library: PathBuf,
    /// Full version, as `13.5.37`.
    pub version: String,
    /// Folder with the bundled headers; C++ core libraries in `cccl` below it.
    pub include: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    library: String,
    library_bytes: u64,
    version: String,
}

impl Install {
    /// The NVRTC that is here: `ASSAY_NVRTC`, else the cache. Uses no network.
    ///
    /// `worker` starts the child that loads a library named by `ASSAY_NVRTC`; the cache needs none.
    ///
    /// # Errors
    /// `NotInstalled` where neither exists, `BadOverride` where the variable names something unusable.
    pub fn locate(worker: &WorkerCommand) -> Result<Self, NvrtcError> {
        if let Some(path) = non_empty("ASSAY_NVRTC") {
            return named(PathBuf::from(path), worker, &cache_dir()?);
        }
        let folder = install_dir(&cache_dir()?);
        match read_installed(&folder) {
            Some(install) => Ok(install),
            None => Err(NvrtcError::NotInstalled { cache: folder, command: pip_command_line("DIR") }),
        }
    }

    /// As [`Install::locate`], but downloads and unpacks the pinned wheel when nothing is here.
    ///
    /// `progress` gets a line per step. Processes that do this at the same time wait for each other, and the folder
    /// appears whole or not at all.
    ///
    /// # Errors
    /// `Download` without network or pip, `Checksum` for another wheel, `Setup` and `Io` for a cache folder that
    /// cannot be written.
    pub fn locate_or_install(
        worker: &WorkerCommand,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, NvrtcError> {
        match Self::locate(worker) {
            Err(NvrtcError::NotInstalled { .. }) => install(worker, &cache_dir()?, progress),
            other => other,
        }
    }
}

fn non_empty(variable: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(variable).filter(|v| !v.is_empty())
}

/// The folder that outlives a run: `ASSAY_CACHE`, else `assay` in the user's cache folder. It need not exist.
///
/// # Errors
/// `NoCache` where no variable names one, `Io` for one that cannot be resolved.
pub fn cache_dir() -> Result<PathBuf, NvrtcError> {
    if let Some(dir) = non_empty("ASSAY_CACHE") {
        return std::path::absolute(PathBuf::from(dir)).map_err(NvrtcError::io("resolve", "ASSAY_CACHE"));
    }
    // The specification of XDG_CACHE_HOME says that a relative path is to be ignored.
    let xdg = non_empty("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let base = xdg.or_else(|| non_empty("HOME").map(|home| PathBuf::from(home).join(".cache")));
    base.map(|b| b.join("assay")).ok_or(NvrtcError::NoCache)
}

fn install_dir(cache: &Path) -> PathBuf {
    let suffix = if std::env::consts::ARCH == "x86_64" {
        String::new()
    } else {
        format!("-{}", std::env::consts::ARCH)
    };
    cache.join(format!("nvrtc-{VERSION}{suffix}"))
}

/// The install in `folder`, if it is whole.
fn read_installed(folder: &Path) -> Option<Install> {
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(MARKER)).ok()?).ok()?;
    let library = folder.join("lib").join(&marker.library);
    let include = folder.join("include");
    let whole = fs::metadata(&library).is_ok_and(|m| m.len() == marker.library_bytes) && include.is_dir();
    whole.then_some(Install { library, version: marker.version, include })
}

fn pip_arguments(target: &str) -> [String; 7] {
    [
        "-m".into(),
        "pip".into(),
        "download".into(),
        "--no-deps".into(),
        "--only-binary=:all:".into(),
        format!("--dest={target}"),
        format!("{PACKAGE}=={VERSION}"),
    ]
}

fn pip_command_line(target: &str) -> String {
    format!("python3 {}", pip_arguments(target).join(" "))
}

fn install(
    worker: &WorkerCommand,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Install, NvrtcError> {
    let arch = std::env::consts::ARCH;
    let expected = WHEELS.iter().find(|(a, _)| *a == arch).map(|(_, hash)| *hash);
    let expected = expected
        .ok_or_else(|| NvrtcError::Platform { platform: format!("{} {arch}", std::env::consts::OS) })?;
    fs::create_dir_all(cache).map_err(NvrtcError::io("create", cache))?;
    let lock_path = cache.join("nvrtc.lock");
    let lock = File::create(&lock_path).map_err(NvrtcError::io("create", &lock_path))?;
    // Some network file systems have no locks; the rename below keeps the result whole without one.
    let _ = lock.lock();
    let target = install_dir(cache);
    if let Some(done) = read_installed(&target) {
        return Ok(done);
    }
    let work = tempfile::Builder::new()
        .prefix("nvrtc-partial-")
        .tempdir_in(cache)
        .map_err(NvrtcError::io("create a folder in", cache))?;
    progress(&format!("downloading NVRTC {VERSION} (about 58 MB, once)"));
    let wheel = download(work.path())?;
    let actual = sha256_of(&wheel)?;
    if actual != expected {
        let file = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(NvrtcError::Checksum { file, actual, expected: expected.into() });
    }
    progress("unpacking NVRTC");
    let built = unpack(&wheel, work.path(), worker)?;
    if target.exists() {
        // Left by something else, and not whole: put it out of the way first, as a rename needs an empty place.
        let broken = work.path().join("broken");
        fs::rename(&target, &broken).map_err(NvrtcError::io("replace", &target))?;
    }
    if let Err(error) = fs::rename(&built, &target) {
        // Without locks another process may have been first; its folder is as good.
        if read_installed(&target).is_none() {
            return Err(NvrtcError::io("create", &target)(error));
        }
    }
    read_installed(&target)
        .ok_or_else(|| NvrtcError::Setup { path: target, reason: "the folder is not whole".into() })
}

fn download(work: &Path) -> Result<PathBuf, NvrtcError> {
    let dest = work.join("wheel");
    let command = pip_command_line("DIR");
    let fail = |reason: String| NvrtcError::Download { reason, command: command.clone() };
    let result = Command::new("python3")
        .args(pip_arguments(&dest.to_string_lossy()))
        .args(["--disable-pip-version-check", "--no-input", "--quiet"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| fail(format!("python3 does not start: {e}")))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("pip gave no reason");
        return Err(fail(last.trim().to_owned()));
    }
    let wheel = fs::read_dir(&dest)
        .map_err(NvrtcError::io("read", &dest))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| fail("pip left no wheel".into()))
}

fn sha256_of(path: &Path) -> Result<String, NvrtcError> {
    let mut file = File::open(path).map_err(NvrtcError::io("open", path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        let n = file.read(&mut buffer).map_err(NvrtcError::io("read", path))?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// Lays out `lib`, `include` and the marker in a folder below `work`; its path.
fn unpack(wheel: &Path, work: &Path, worker: &WorkerCommand) -> Result<PathBuf, NvrtcError> {
    let raw = work.join("raw");
    let result = Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .args([wheel, &raw])
        .stdin(Stdio::null())
        .output()
        .map_err(NvrtcError::io("start", "python3"))?;
    let setup = |reason: String| NvrtcError::Setup { path: work.to_owned(), reason };
    if !result.status.success() {
        return Err(setup(String::from_utf8_lossy(&result.stderr).trim().to_owned()));
    }
    let built = work.join("built");
    let lib = built.join("lib");
    fs::create_dir_all(&lib).map_err(NvrtcError::io("create", &lib))?;
    let mut library = None;
    for found in libraries_below(&raw, 6) {
        let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = lib.join(&name);
        fs::rename(&found, &target).map_err(NvrtcError::io("move", &found))?;
        if name.starts_with("libnvrtc.so") {
            library = Some(target);
        }
    }
    let library = library.ok_or_else(|| setup("the wheel has no `libnvrtc.so`".into()))?;
    let include = built.join("include");
    let (version, has_headers) = pool::setup(worker, &library, Some(&include)).map_err(&setup)?;
    if !has_headers {
        return Err(setup("this NVRTC brings no headers".into()));
    }
    let marker = Marker {
        library: library.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        library_bytes: fs::metadata(&library).map_err(NvrtcError::io("read", &library))?.len(),
        version,
    };
    write_marker(&built, &marker)?;
    Ok(built)
}

fn write_marker(folder: &Path, marker: &Marker) -> Result<(), NvrtcError> {
    let path = folder.join(MARKER);
    let text = serde_json::to_vec_pretty(marker)
        .map_err(|e| NvrtcError::Setup { path: path.clone(), reason: e.to_string() })?;
    fs::write(&path, text).map_err(NvrtcError::io("write", &path))
}

fn libraries_below(folder: &Path, depth: u32) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() && depth > 0 {
            out.extend(libraries_below(&path, depth - 1));
        } else if entry.file_name().to_string_lossy().starts_with("libnvrtc") {
            out.push(path);
        }
    }
    out
}

/// The library that `ASSAY_NVRTC` names, checked by a child; its headers are unpacked into the cache once.
fn named(path: PathBuf, worker: &WorkerCommand, cache: &Path) -> Result<Install, NvrtcError> {
    let bad = |reason: &str| NvrtcError::BadOverride { path: path.clone(), reason: reason.to_owned() };
    let meta = fs::metadata(&path).map_err(|_| bad("does not exist"))?;
    if !meta.is_file() {
        return Err(bad("is not a file"));
    }
    let library = fs::canonicalize(&path).map_err(NvrtcError::io("resolve", &path))?;
    let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let key = format!("{}\0{}\0{:?}", library.display(), meta.len(), modified);
    let key: String = Sha256::digest(key.as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect();
    let folder = cache.join(format!("nvrtc-named-{key}"));
    let answer = |folder: &Path, version: String| Install {
        library: library.clone(),
        version,
        include: folder.join("include"),
    };
    if let Some(marker) =
        fs::read(folder.join(MARKER)).ok().and_then(|t| serde_json::from_slice::<Marker>(&t).ok())
    {
        return Ok(answer(&folder, marker.version));
    }
    fs::create_dir_all(cache).map_err(NvrtcError::io("create", cache))?;
    let work = tempfile::Builder::new()
        .prefix("nvrtc-partial-")
        .tempdir_in(cache)
        .map_err(NvrtcError::io("create a folder in", cache))?;
    let built = work.path().join("built");
    let include = built.join("include");
    fs::create_dir_all(&include).map_err(NvrtcError::io("create", &include))?;
    let (version, _) = pool::setup(worker, &library, Some(&include)).map_err(|e| bad(&e))?;
    let marker = Marker {
        library: library.display().to_string(),
        library_bytes: meta.len(),
        version: version.clone(),
    };
    write_marker(&built, &marker)?;
    if let Err(error) = fs::rename(&built, &folder)
        && !folder.join(MARKER).exists()
    {
        return Err(NvrtcError::io("create", &folder)(error));
    }
    Ok(answer(&folder, version))
}

/// Sends a setup request to a fresh worker. The version, and whether headers were unpacked.
pub(crate) fn setup_request(library: &Path, headers: Option<&Path>) -> Request {
    Request::Setup { library: library.to_owned(), headers: headers.map(Path::to_owned) }
}

/// Reads the answer to [`setup_request`].
pub(crate) fn setup_answer(answer: Answer) -> Result<(String, bool), String> {
    match answer {
        Answer::Setup { version, has_headers } => Ok((version, has_headers)),
        Answer::Failed { message } => Err(message),
        _ => Err("got an answer of another kind".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_used_only_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_installed(dir.path()), None);
        fs::create_dir_all(dir.path().join("lib")).unwrap();
        fs::create_dir_all(dir.path().join("include")).unwrap();
        fs::write(dir.path().join("lib/libnvrtc.so.13"), b"12345").unwrap();
        assert_eq!(read_installed(dir.path()), None);
        let marker = |bytes| Marker {
            library: "libnvrtc.so.13".into(),
            library_bytes: bytes,
            version: "13.5.37".into(),
        };
        write_marker(dir.path(), &marker(6)).unwrap();
        assert_eq!(read_installed(dir.path()), None);
        write_marker(dir.path(), &marker(5)).unwrap();
        assert_eq!(read_installed(dir.path()).unwrap().version, "13.5.37");
    }

    #[test]
    fn the_error_without_network_names_the_command_and_the_variable() {
        let error = NvrtcError::Download { reason: "no route".into(), command: pip_command_line("DIR") };
        let text = error.to_string();
        assert!(text.contains("python3 -m pip download --no-deps --only-binary=:all: --dest=DIR"), "{text}");
        assert!(text.contains("nvidia-cuda-nvrtc==13.5.37") && text.contains("ASSAY_NVRTC"), "{text}");
    }
}
