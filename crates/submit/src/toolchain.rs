//! A C++ compiler for the host part of extensions: found, confined, its results kept.
//!
//! Texts are hostile. The compiler runs in a process that reads the system's folders, the compiler's, the headers of
//! PyTorch and Python, and a folder of its own, the only one that it writes to; it has no network, and limits of time,
//! memory and file size (`python/assay/host_compiler.py`). Its options are ours alone. What it makes is never loaded here,
//! only by the confined process of the submission.
//!
//! Results lie in `host/` of the cache folder by the SHA-256 of the compiler's version, PyTorch's and Python's, our header
//! and the text. PyTorch's headers are compiled once for each such environment (`host/headers-…`, about 500 MB): a text
//! then takes a few seconds instead of half a minute.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use assay_extension::compiled::{HEADER, HostText, first_error};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::scripts;

/// Processor seconds and seconds for one text, and for PyTorch's headers; both of a slow machine.
const SECONDS: u64 = 120;
const HEADER_SECONDS: u64 = 600;
/// Bytes of address space and of one file.
const MEMORY: u64 = 6 << 30;
const FILE: u64 = 64 << 20;
const HEADER_FILE: u64 = 2 << 30;
/// Bytes of messages that are looked at.
const WORDS: usize = 1 << 20;
/// Libraries that an extension of PyTorch's names.
const LIBRARIES: [&str; 4] = ["-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"];

/// Why there is no compiled host part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompiled {
    /// In a few words.
    pub message: String,
    /// In the CUDA sources.
    pub line: Option<u32>,
}

fn lacking(message: impl Into<String>) -> NotCompiled {
    NotCompiled { message: message.into(), line: None }
}

/// A C++ compiler with the headers of one Python's PyTorch.
pub struct Toolchain {
    cxx: PathBuf,
    python: PathBuf,
    include: Vec<PathBuf>,
    library: PathBuf,
    /// Of everything but the text.
    environment: String,
    cache: PathBuf,
    /// One text at a time: a compiler takes a gigabyte.
    turn: Mutex<()>,
    name: String,
    headers: [OnceLock<Result<PathBuf, NotCompiled>>; 2],
}

impl Toolchain {
    /// The compiler that `CXX` names, else `g++`, `clang++` or `c++` of the path, with the headers of a Python.
    ///
    /// # Errors
    /// What is missing: a compiler, PyTorch's headers, Python's, a cache folder.
    pub fn find(python: &Path) -> Result<Toolchain, NotCompiled> {
        let cxx = compiler().ok_or_else(|| {
            lacking("no C++ compiler: `CXX` names none, and the path has neither g++ nor clang++")
        })?;
        let version = output(Command::new(&cxx).arg("--version"))
            .ok_or_else(|| lacking(format!("`{} --version` fails", cxx.display())))?;
        let scratch = tempfile::tempdir().map_err(|e| lacking(format!("no folder: {e}")))?;
        let mut describe = scripts::command(scripts::COMPILER, python, scratch.path())
            .map_err(|e| lacking(format!("no folder: {e}")))?;
        let described = output(describe.arg("describe"))
            .ok_or_else(|| lacking(format!("`{}` does not run", python.display())))?;
        let described: Json =
            serde_json::from_str(&described).map_err(|e| lacking(format!("headers of PyTorch: {e}")))?;
        if let Some(missing) = described.get("missing").and_then(Json::as_str) {
            return Err(lacking(missing));
        }
        let text = |k: &str| described.get(k).and_then(Json::as_str).unwrap_or_default().to_owned();
        let mut include: Vec<PathBuf> = described
            .get("include")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(PathBuf::from)
            .collect();
        include.push(text("python_include").into());
        let cache = assay_nvrtc::cache_dir().map_err(|e| lacking(e.to_string()))?.join("host");
        let environment = json!([cxx, version, described, HEADER, OPTIONS, LIBRARIES, 1]).to_string();
        let name = version.lines().next().unwrap_or("a C++ compiler").to_owned();
        Ok(Toolchain {
            cxx,
            python: python.to_owned(),
            include,
            library: text("library").into(),
            environment,
            cache,
            turn: Mutex::new(()),
            name,
            headers: Default::default(),
        })
    }

    /// The compiler's name and version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A text as a shared library, which only a confined process may load.
    ///
    /// # Errors
    /// What the compiler says, or what ran out.
    pub fn compile(&self, text: &HostText) -> Result<PathBuf, NotCompiled> {
        let key = digest(&[&self.environment, if text.whole { "whole" } else { "" }, &text.text]);
        let done = self.cache.join(format!("{key}.so"));
        if done.is_file() {
            return Ok(done);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if done.is_file() {
            return Ok(done);
        }
        let headers =
            self.headers[usize::from(text.whole)].get_or_init(|| self.precompile(text.whole)).clone()?;
        let work = self.folder()?;
        fs::write(work.path().join("extension.cpp"), &text.text).map_err(|e| lacking(e.to_string()))?;
        let mut argv = self.options(text.whole);
        argv.extend(["-include".into(), headers.join("assay_host.h").display().to_string()]);
        argv.extend(["-shared", "-o", "extension.so", "extension.cpp"].map(String::from));
        argv.push(format!("-L{}", self.library.display()));
        argv.extend(LIBRARIES.map(String::from));
        let readable = [headers, self.library.clone()];
        self.run(&argv, work.path(), &readable, SECONDS, FILE, false)?;
        self.keep(&work.path().join("extension.so"), &done)?;
        Ok(done)
    }

    /// Our header and PyTorch's, compiled.
    fn precompile(&self, whole: bool) -> Result<PathBuf, NotCompiled> {
        let key = digest(&[&self.environment, if whole { "whole" } else { "" }]);
        let folder = self.cache.join(format!("headers-{}", &key[..16]));
        if folder.join("complete").is_file() {
            return Ok(folder);
        }
        let work = self.folder()?;
        let write = |name: &str, text: &str| {
            fs::write(work.path().join(name), text).map_err(|e| lacking(format!("`{name}`: {e}")))
        };
        write("assay_host.h", HEADER)?;
        let mut argv = self.options(whole);
        argv.extend(["-x", "c++-header", "assay_host.h", "-o"].map(String::from));
        // Either compiler finds the header by its own ending, beside the text.
        let clang = self.name.contains("clang");
        argv.push(if clang { "assay_host.h.pch" } else { "assay_host.h.gch" }.into());
        self.run(&argv, work.path(), &[], HEADER_SECONDS, HEADER_FILE, true)?;
        write("complete", "")?;
        let made = work.keep();
        if fs::rename(&made, &folder).is_err() {
            // Another process was first.
            let _ = fs::remove_dir_all(&made);
            if !folder.join("complete").is_file() {
                return Err(lacking(format!("the folder `{}` cannot be made", folder.display())));
            }
        }
        Ok(folder)
    }

    fn options(&self, whole: bool) -> Vec<String> {
        let mut out: Vec<String> = vec![self.cxx.display().to_string()];
        out.extend(OPTIONS.map(String::from));
        if whole {
            out.push("-DASSAY_WHOLE".into());
        }
        for i in &self.include {
            out.extend(["-isystem".into(), i.display().to_string()]);
        }
        out
    }

    /// A folder of the compiler's own, in the cache: what it makes may be moved from there in one step.
    fn folder(&self) -> Result<tempfile::TempDir, NotCompiled> {
        fs::create_dir_all(&self.cache)
            .and_then(|()| tempfile::Builder::new().prefix("work-").tempdir_in(&self.cache))
            .map_err(|e| lacking(format!("the folder `{}`: {e}", self.cache.display())))
    }

    fn keep(&self, made: &Path, done: &Path) -> Result<(), NotCompiled> {
        // The folder was the compiler's, and the text is hostile: what lies there has to be a file.
        let plain = fs::symlink_metadata(made).is_ok_and(|m| m.is_file());
        if !plain {
            return Err(lacking("the compiler made no library"));
        }
        fs::rename(made, done).map_err(|e| lacking(format!("`{}`: {e}", done.display())))
    }

    fn run(
        &self,
        argv: &[String],
        private: &Path,
        readable: &[PathBuf],
        seconds: u64,
        file: u64,
        trusted: bool,
    ) -> Result<(), NotCompiled> {
        let io = |e: std::io::Error| lacking(format!("the compiler cannot be started: {e}"));
        let scratch = tempfile::tempdir().map_err(io)?;
        let mut folders: Vec<PathBuf> = readable.to_vec();
        folders.extend(self.include.iter().cloned());
        // The folder of an installation that is not the system's.
        if let Some(own) =
            fs::canonicalize(&self.cxx).ok().as_deref().and_then(Path::parent).and_then(Path::parent)
            && own.components().count() > 2
        {
            folders.push(own.to_owned());
        }
        let spec = scratch.path().join("spec.json");
        let text = json!({
            "argv": argv, "readable": folders, "private": private, "trusted": trusted,
            "limits": {"memory": MEMORY, "cpu": seconds, "file": file, "files": 256, "processes": 4096},
        });
        fs::write(&spec, text.to_string()).map_err(io)?;
        let said = scratch.path().join("said");
        let out = fs::File::create(&said).map_err(io)?;
        let mut command = scripts::command(scripts::COMPILER, &self.python, scratch.path()).map_err(io)?;
        command.arg("run").arg(&spec).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        // Its processes are a group, which ends as one.
        let child = command.stderr(out).process_group(0).spawn().map_err(io)?;
        let status = wait(child, Duration::from_secs(seconds.saturating_mul(2)))?;
        if status.success() {
            return Ok(());
        }
        let mut said = fs::read(&said).unwrap_or_default();
        said.truncate(WORDS);
        let said = String::from_utf8_lossy(&said);
        if let Some((message, line)) = first_error(&said) {
            return Err(NotCompiled { message: format!("the C++ compiler says: {message}"), line });
        }
        let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
        Err(lacking(format!("the C++ compiler ended with {status}: {last}")))
    }
}

/// Options of every compilation. Speed of the host part is nothing, that of the compiler much.
const OPTIONS: [&str; 6] = ["-std=c++20", "-O0", "-w", "-fPIC", "-fno-diagnostics-show-caret", "-pipe"];

/// Ends a group of processes whose first one has not been waited for, so that its number is still its own.
fn end(child: &Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
}

fn wait(mut child: Child, limit: Duration) -> Result<std::process::ExitStatus, NotCompiled> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if began.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                end(&child);
                let _ = child.wait();
                return Err(lacking(format!("the C++ compiler took more than {} s", limit.as_secs())));
            }
            Err(e) => return Err(lacking(format!("the C++ compiler: {e}"))),
        }
    }
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for p in parts {
        hash.update((p.len() as u64).to_le_bytes());
        hash.update(p.as_bytes());
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// What a command writes, if it ends well.
fn output(command: &mut Command) -> Option<String> {
    let out = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

fn compiler() -> Option<PathBuf> {
    let named = std::env::var_os("CXX").filter(|v| !v.is_empty());
    let names: Vec<PathBuf> = match named {
        // What is named and not there is missing: another would be a surprise.
        Some(name) => vec![name.into()],
        None => ["g++", "clang++", "c++"].map(PathBuf::from).to_vec(),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in names {
        if name.components().count() > 1 {
            return std::path::absolute(&name).ok().filter(|p| p.is_file());
        }
        let found = std::env::split_paths(&path)
            .filter(|d| d.is_absolute())
            .map(|d| d.join(&name))
            .find(|p| p.is_file());
        if found.is_some() {
            return found;
        }
    }
    None
}

/// A copy of a library in a folder that its submission owns, under a name that it could not foresee.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn lend(library: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let mut source = fs::File::open(library)?;
    // `O_EXCL`: a link that waits there is not followed.
    let mut file = tempfile::Builder::new().prefix("extension-").suffix(".so").tempfile_in(folder)?;
    std::io::copy(&mut source, &mut file)?;
    file.flush()?;
    let (_, path) = file.keep().map_err(|e| e.error)?;
    Ok(path)
}
