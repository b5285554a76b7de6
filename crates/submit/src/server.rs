//! The fork server, and the confined child that one submission runs in.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_worker::{Exchange, Worker};
use serde_json::{Value as Json, json};

use crate::error::SubmitError;
use crate::scripts;

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The longest line of a conversation: a submission's sources are part of one.
const LINE_BYTES: u64 = 16 << 20;
/// Bytes kept of what a submission wrote to its standard error.
const WORDS: u64 = 2048;

/// What a submission may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory beyond what an idle PyTorch has.
    pub memory: u64,
    /// Processor seconds of its process.
    pub cpu: u64,
    /// Bytes of one file.
    pub file: u64,
    /// Open files.
    pub files: u64,
    /// Processes of the user, where the system counts them.
    pub processes: u64,
    /// Bytes of tensors that one message may carry.
    pub exchange: u64,
    /// Files and folders in its private folder, and their bytes together.
    pub private_files: u64,
    /// See above.
    pub private_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory: 6 << 30,
            cpu: 120,
            file: 64 << 20,
            files: 256,
            processes: 4096,
            exchange: 1 << 30,
            private_files: 4096,
            private_bytes: 256 << 20,
        }
    }
}

/// How a child ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Exit status, or minus the signal.
    pub status: i64,
    /// Had it not ended by itself?
    pub killed: bool,
    /// The end of its standard error.
    pub words: String,
}

/// A PyTorch that is imported and waits to be forked.
pub struct Server {
    worker: Worker<'static>,
    scratch: tempfile::TempDir,
    environment: Json,
    interrupted: &'static AtomicBool,
    number: u64,
    missing: Vec<String>,
}

impl Server {
    /// Starts the interpreter and waits until PyTorch is imported.
    ///
    /// # Errors
    /// `Unusable`, `Io`, `Worker`, `Interrupted`.
    pub fn start(python: &Path, interrupted: &'static AtomicBool) -> Result<Server, SubmitError> {
        let scratch = tempfile::Builder::new()
            .prefix("assay-submit-")
            .tempdir()
            .map_err(|e| SubmitError::io("cannot make a folder for workers", e))?;
        let command = scripts::command(scripts::SUBMISSION, python, scratch.path())
            .map_err(|e| SubmitError::io("cannot write the workers", e))?;
        let mut worker = Worker::start(command, Duration::from_secs(120), interrupted)
            .map_err(|e| SubmitError::of(e.into(), "starting"))?;
        let ready = worker
            .ask(&json!({"type": "hello", "version": VERSION}))
            .map_err(|e| SubmitError::of(e, "the first word of the worker"))?;
        let environment = ready.get("environment").cloned().unwrap_or(Json::Null);
        Ok(Server { worker, scratch, environment, interrupted, number: 0, missing: Vec::new() })
    }

    /// What runs: `torch`, `python`, `platform`.
    pub fn environment(&self) -> &Json {
        &self.environment
    }

    /// What the system did not let children be confined by, as far as there were any.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// A child for one submission.
    ///
    /// # Errors
    /// `Io`, `Worker`, `Interrupted`.
    pub fn fork(&mut self, precision: &str, limits: &Limits) -> Result<Child, SubmitError> {
        self.number += 1;
        let socket = self.scratch.path().join(format!("s{}", self.number));
        let listener = UnixListener::bind(&socket).map_err(|e| SubmitError::io("cannot make a socket", e))?;
        let private = tempfile::Builder::new()
            .prefix("assay-private-")
            .tempdir()
            .map_err(|e| SubmitError::io("cannot make a private folder", e))?;
        let exchange =
            Exchange::new(limits.exchange).map_err(|e| SubmitError::of(e.into(), "the exchange"))?;
        let request = json!({
            "type": "fork",
            "socket": socket,
            "exchange": {"path": exchange.path(), "bytes": exchange.len()},
            "private": private.path(),
            "precision": precision,
            "limits": {
                "memory": limits.memory, "cpu": limits.cpu, "file": limits.file, "files": limits.files,
                "processes": limits.processes,
            },
        });
        self.worker.allow(Duration::from_secs(60));
        let reply = self.worker.ask(&request).map_err(|e| SubmitError::of(e, "a fork"))?;
        let pid = reply
            .get("pid")
            .and_then(Json::as_i64)
            .ok_or_else(|| SubmitError::Worker(format!("the worker answered `fork` with `{reply}`")))?;
        let stream = self.accept(&listener)?;
        let _ = std::fs::remove_file(&socket);
        let reader = BufReader::new(stream.try_clone().map_err(|e| SubmitError::io("a socket", e))?);
        let mut child = Child {
            pid,
            stream,
            reader,
            line: Vec::new(),
            exchange,
            private,
            interrupted: self.interrupted,
            most: (limits.private_files, limits.private_bytes),
            looked: Instant::now(),
        };
        let born = child
            .receive(Instant::now() + Duration::from_secs(60))
            .map_err(|gone| SubmitError::Worker(format!("a worker did not begin: {gone:?}")))?;
        self.missing = born
            .get("missing")
            .and_then(Json::as_array)
            .map(|all| all.iter().filter_map(Json::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        Ok(child)
    }

    fn accept(&self, listener: &UnixListener) -> Result<UnixStream, SubmitError> {
        listener.set_nonblocking(true).map_err(|e| SubmitError::io("a socket", e))?;
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(|e| SubmitError::io("a socket", e))?;
                    return Ok(stream);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(SubmitError::io("a socket", e)),
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(SubmitError::Interrupted);
            }
            if Instant::now() > deadline {
                return Err(SubmitError::Worker("a forked worker did not connect".into()));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Ends a child, which is given a moment to end by itself where it said nothing for no known reason.
    ///
    /// # Errors
    /// `Worker`, `Interrupted`.
    pub fn end(&mut self, child: Child, patience: u64) -> Result<Ending, SubmitError> {
        let Child { pid, stream, reader, private, exchange, .. } = child;
        drop((stream, reader, exchange));
        self.worker.allow(Duration::from_secs(30));
        let reply = self
            .worker
            .ask(&json!({"type": "end", "pid": pid, "patience": patience}))
            .map_err(|e| SubmitError::of(e, "the end of a child"))?;
        Ok(Ending {
            status: reply.get("status").and_then(Json::as_i64).unwrap_or(-9),
            killed: reply.get("killed").and_then(Json::as_bool).unwrap_or(true),
            words: words(&private.path().join("words")),
        })
    }
}

/// The end of what a child wrote to its standard error.
fn words(path: &PathBuf) -> String {
    use std::io::{Seek as _, SeekFrom};
    let read = || -> std::io::Result<String> {
        // The folder is the submission's: what stands there may be a link to anywhere.
        if !std::fs::symlink_metadata(path)?.is_file() {
            return Ok(String::new());
        }
        let mut file = std::fs::File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(WORDS)))?;
        let mut out = Vec::new();
        file.take(WORDS).read_to_end(&mut out)?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    };
    read().unwrap_or_default()
}

/// Why a child says nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It closed the line: it ended.
    Closed,
    /// It did not answer in time.
    TimedOut,
    /// What it says is not of the protocol.
    Broken(String),
    /// It filled its private folder.
    Hoards(String),
    /// The user stopped us.
    Interrupted,
}

/// The process of one submission.
pub struct Child {
    pid: i64,
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
    /// The file that both sides map.
    pub exchange: Exchange,
    private: tempfile::TempDir,
    interrupted: &'static AtomicBool,
    /// Files, and bytes, of its private folder.
    most: (u64, u64),
    /// When that folder was last looked at.
    looked: Instant,
}

/// Between two looks at a private folder.
const LOOK: Duration = Duration::from_millis(50);

/// What is too much in a folder, if anything is: `(files, bytes)` are the most that it may hold. Links are not followed,
/// and no more is looked at than that many files.
fn hoard(folder: &Path, (files, bytes): (u64, u64)) -> Option<String> {
    let (mut count, mut size) = (0u64, 0u64);
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        // A folder that is gone again, or nested deeper than a path is long.
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            count += 1;
            if count > files {
                return Some(format!("more than {files} files in its private folder"));
            }
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                size = size.saturating_add(meta.len());
            }
            if size > bytes {
                return Some(format!("more than {} MiB in its private folder", bytes >> 20));
            }
        }
    }
    None
}

impl Child {
    /// Its private folder.
    pub fn private(&self) -> &Path {
        self.private.path()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `Closed`; `TimedOut` where it does not read.
    pub fn send(&mut self, message: &Json) -> Result<(), Gone> {
        let mut line = message.to_string();
        line.push('\n');
        self.stream
            .set_write_timeout(Some(Duration::from_secs(20)))
            .and_then(|()| self.stream.write_all(line.as_bytes()))
            .map_err(|e| match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Gone::TimedOut,
                _ => Gone::Closed,
            })
    }

    /// The next message.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn receive(&mut self, deadline: Instant) -> Result<Json, Gone> {
        self.line.clear();
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Gone::Interrupted);
            }
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                if let Some(what) = hoard(self.private.path(), self.most) {
                    return Err(Gone::Hoards(what));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Gone::TimedOut);
            }
            let wait = left.clamp(Duration::from_millis(1), Duration::from_millis(100));
            self.stream.set_read_timeout(Some(wait)).map_err(|_| Gone::Closed)?;
            let room = LINE_BYTES.saturating_sub(self.line.len() as u64);
            match self.reader.by_ref().take(room).read_until(b'\n', &mut self.line) {
                Ok(_) if self.line.ends_with(b"\n") => {
                    return serde_json::from_slice(&self.line)
                        .ok()
                        .filter(|m: &Json| m.get("type").is_some_and(Json::is_string))
                        .ok_or_else(|| Gone::Broken("a line that is no message".into()));
                }
                Ok(_) if self.line.len() as u64 >= LINE_BYTES => {
                    return Err(Gone::Broken("a line longer than 16 MiB".into()));
                }
                Ok(_) => return Err(Gone::Closed),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(_) => return Err(Gone::Closed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_too_much_in_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("x"), [0u8; 3 << 10]).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("link")).unwrap();
        assert_eq!(hoard(folder.path(), (4, 4 << 20)), None);
        assert!(hoard(folder.path(), (3, 4 << 20)).unwrap().contains("more than 3 files"));
        assert!(hoard(folder.path(), (100, 2 << 10)).unwrap().contains("MiB"));
    }
}
