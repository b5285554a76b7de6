//! The host's side of the workers: starts them, speaks with them, ends those that take too long.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::NvrtcError;
use crate::install::{Install, setup_answer, setup_request};
use crate::protocol::{
    Answer, CompileRequest, Compiled, MAX_FRAME_BYTES, Request, WorkerLimits, write_frame,
};
use crate::worker::OUT_OF_TIME;

/// How to start a compile worker: a program that calls [`crate::worker_main`] when run with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// Path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// What a worker may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time of one NVRTC call, in seconds; then the worker is killed.
    pub wall_seconds: u64,
    /// Processor time of one NVRTC call, in seconds.
    pub cpu_seconds: u64,
    /// Address space of a worker, in bytes. NVRTC alone maps about 0.3 GiB.
    pub memory_bytes: u64,
    /// Longest log kept, in bytes.
    pub log_bytes: u64,
    /// Most units in one NVRTC call.
    pub batch_units: u64,
    /// Confine workers with Landlock where the kernel has it. Without it, computed includes and everything else that
    /// could hide a header's name are refused.
    pub landlock: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_seconds: 60,
            cpu_seconds: 60,
            memory_bytes: 4 << 30,
            log_bytes: 64 << 10,
            batch_units: 16,
            landlock: true,
        }
    }
}

/// NVRTC calls after which a worker is replaced, so that leaks inside NVRTC stay bounded.
const CALLS_PER_WORKER: u32 = 1000;

/// Why a call gave no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The time is over.
    TimedOut,
    /// The worker ended: by this signal, or with this description.
    Died(String),
    /// NVRTC failed in a way that is not about the source.
    Failed(String),
    /// No worker could be had.
    Setup(NvrtcError),
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    dirs: Vec<PathBuf>,
    calls: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn spawn(command: &WorkerCommand) -> io::Result<Self> {
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a pipe is missing"));
        };
        Ok(Self { child, stdin, stdout, dirs: vec![], calls: 0 })
    }

    fn call(&mut self, request: &Request, wall: Duration) -> Result<Answer, CallError> {
        let deadline = Instant::now().checked_add(wall);
        let sent = write_frame(&mut self.stdin, request);
        let mut read = || -> io::Result<Option<Vec<u8>>> {
            let Some(length) = self.read_exactly(4, deadline)? else { return Ok(None) };
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            if length > MAX_FRAME_BYTES {
                return Err(io::Error::other("answers with a frame that is too long"));
            }
            self.read_exactly(length as usize, deadline)
        };
        // A worker that died while the request went out says so by the end of its output.
        let answer = match sent.and_then(|()| read()) {
            Ok(Some(body)) => serde_json::from_slice(&body).map_err(io::Error::other),
            Ok(None) => return Err(CallError::TimedOut),
            Err(error) => Err(error),
        };
        answer.map_err(|error| CallError::Died(self.post_mortem(&error)))
    }

    /// `None` when the deadline passes first.
    fn read_exactly(&mut self, bytes: usize, deadline: Option<Instant>) -> io::Result<Option<Vec<u8>>> {
        let mut out = Vec::new();
        let mut buffer = [0u8; 64 << 10];
        while out.len() < bytes {
            let left = match deadline {
                Some(at) => at.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return Ok(None);
            }
            let mut poll = libc::pollfd { fd: self.stdout.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
            // SAFETY: one live pollfd of an open descriptor.
            let ready = unsafe { libc::poll(&mut poll, 1, millis) };
            if ready < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            if ready == 0 {
                continue;
            }
            let want = (bytes - out.len()).min(buffer.len());
            match self.stdout.read(&mut buffer[..want])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => out.extend_from_slice(&buffer[..n]),
            }
        }
        Ok(Some(out))
    }

    /// Why the worker is gone, in words.
    fn post_mortem(&mut self, error: &io::Error) -> String {
        // It closed its pipe, so it is ending; a worker that only spoke nonsense is ended.
        let give_up = Instant::now() + Duration::from_secs(2);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    return match status.signal() {
                        Some(libc::SIGXCPU) => "used up its processor time".into(),
                        Some(signal) => format!("was ended by signal {signal}"),
                        None if status.code() == Some(OUT_OF_TIME) => "used up its processor time".into(),
                        None => format!("ended with exit code {}", status.code().unwrap_or(-1)),
                    };
                }
                Ok(None) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(5)),
                _ => {
                    let _ = self.child.kill();
                    return format!("broke off: {error}");
                }
            }
        }
    }
}

/// One setup call to a worker of its own: the version, and whether headers were unpacked.
pub(crate) fn setup(
    command: &WorkerCommand,
    library: &Path,
    headers: Option<&Path>,
) -> Result<(String, bool), String> {
    let mut worker = Worker::spawn(command)
        .map_err(|e| format!("the compile worker `{}` does not start: {e}", command.program.display()))?;
    match worker.call(&setup_request(library, headers), Duration::from_secs(120)) {
        Ok(answer) => setup_answer(answer),
        Err(CallError::TimedOut) => Err("the compile worker took longer than 120 s".into()),
        Err(CallError::Died(how)) => Err(format!("the compile worker {how}")),
        Err(CallError::Failed(message)) => Err(message),
        Err(CallError::Setup(error)) => Err(error.to_string()),
    }
}

type SpawnReply = Sender<io::Result<Worker>>;

/// Up to `jobs` workers, started when needed and kept.
pub(crate) struct Pool {
    install: Install,
    command: WorkerCommand,
    pub limits: Limits,
    jobs: usize,
    state: Mutex<State>,
    freed: Condvar,
    /// Workers are started by one thread that lives as long as the pool, because the kernel ends a worker when the
    /// *thread* that started it ends.
    spawner: Mutex<Sender<SpawnReply>>,
}

struct State {
    idle: Vec<Worker>,
    busy: usize,
}

impl Pool {
    pub(crate) fn new(install: Install, command: WorkerCommand, jobs: usize, limits: Limits) -> Self {
        let (spawner, requests) = mpsc::channel::<SpawnReply>();
        let to_start = command.clone();
        std::thread::spawn(move || {
            for reply in requests {
                // The pool may be gone meanwhile; then the worker is dropped, which ends it.
                let _ = reply.send(Worker::spawn(&to_start));
            }
        });
        Self {
            install,
            command,
            limits,
            jobs: jobs.max(1),
            state: Mutex::new(State { idle: vec![], busy: 0 }),
            freed: Condvar::new(),
            spawner: Mutex::new(spawner),
        }
    }

    pub(crate) fn install(&self) -> &Install {
        &self.install
    }

    pub(crate) fn jobs(&self) -> usize {
        self.jobs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wall(&self) -> Duration {
        Duration::from_secs(self.limits.wall_seconds.max(1))
    }

    /// Compiles in a worker that sees `dirs` besides NVRTC's own folders.
    pub(crate) fn compile(&self, dirs: &[PathBuf], request: CompileRequest) -> Result<Compiled, CallError> {
        let mut worker = self.take(dirs)?;
        let result = worker.call(&Request::Compile(request), self.wall());
        worker.calls += 1;
        let outcome = match result {
            Ok(Answer::Compiled(compiled)) => Ok(compiled),
            Ok(Answer::Failed { message }) => Err(CallError::Failed(message)),
            Ok(_) => Err(CallError::Failed("the worker gave an answer of another kind".into())),
            Err(error) => Err(error),
        };
        // A worker is kept only after a proper answer.
        let keep = outcome.is_ok() && worker.calls < CALLS_PER_WORKER;
        self.give_back(keep.then_some(worker));
        outcome
    }

    fn give_back(&self, worker: Option<Worker>) {
        let mut state = self.state();
        state.busy -= 1;
        state.idle.extend(worker);
        drop(state);
        self.freed.notify_one();
    }

    fn take(&self, dirs: &[PathBuf]) -> Result<Worker, CallError> {
        let mut state = self.state();
        while state.busy >= self.jobs {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.busy += 1;
        let fitting = state.idle.iter().position(|w| w.dirs == dirs);
        let ready = match fitting {
            Some(at) => Some(state.idle.swap_remove(at)),
            None => {
                // No more processes than jobs: one that sees other folders makes room.
                if state.busy + state.idle.len() > self.jobs {
                    state.idle.pop();
                }
                None
            }
        };
        drop(state);
        match ready {
            Some(worker) => Ok(worker),
            None => self.start(dirs).inspect_err(|_| self.give_back(None)),
        }
    }

    fn start(&self, dirs: &[PathBuf]) -> Result<Worker, CallError> {
        let fail = |reason: String| {
            CallError::Setup(NvrtcError::Worker { program: self.command.program.clone(), reason })
        };
        let (reply, answer) = mpsc::channel();
        let spawner = self.spawner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        spawner.send(reply).map_err(|_| fail("cannot be started: the starting thread is gone".into()))?;
        let mut worker = answer
            .recv()
            .map_err(|_| fail("cannot be started: the starting thread is gone".into()))?
            .map_err(|e| fail(format!("cannot be started: {e}")))?;
        let mut read_dirs = vec![self.install.include.clone()];
        read_dirs.extend(self.install.library.parent().map(Path::to_owned));
        read_dirs.extend(dirs.iter().cloned());
        let limits = WorkerLimits {
            cpu_seconds: self.limits.cpu_seconds.max(1),
            memory_bytes: self.limits.memory_bytes,
            log_bytes: self.limits.log_bytes,
            landlock: self.limits.landlock,
        };
        let request = Request::Start { library: self.install.library.clone(), read_dirs, limits };
        match worker.call(&request, self.wall()) {
            Ok(Answer::Ready { .. }) => {}
            Ok(Answer::Failed { message }) => return Err(fail(message)),
            Ok(_) => return Err(fail("gave an answer of another kind".into())),
            Err(CallError::TimedOut) => return Err(fail("took too long to start".into())),
            Err(CallError::Died(how) | CallError::Failed(how)) => return Err(fail(how)),
            Err(setup) => return Err(setup),
        }
        worker.dirs = dirs.to_vec();
        Ok(worker)
    }
}
