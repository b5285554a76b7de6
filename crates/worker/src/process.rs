//! The process: started, asked, ended.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Ended, Stop, WorkerError};

/// Bytes kept of a worker's standard error.
const STDERR_TAIL: usize = 4096;

/// The longest line that a worker may write.
const MAX_LINE: u64 = 1 << 20;

/// A running worker.
pub struct Worker<'a> {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Result<String, String>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    deadline: Instant,
    interrupted: &'a AtomicBool,
}

impl<'a> Worker<'a> {
    /// Starts `command`; every answer must come before `limit` has passed since now.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start(
        mut command: Command,
        limit: Duration,
        interrupted: &'a AtomicBool,
    ) -> Result<Worker<'a>, WorkerError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| WorkerError::Start { program: name, error })?;
        let (Some(stdin), Some(stdout), Some(mut err)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(WorkerError::Protocol("a worker without pipes".into()));
        };
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(n) if n as u64 == MAX_LINE => {
                        let _ = send.send(Err("a line longer than 1 MiB".to_owned()));
                        break;
                    }
                    Ok(_) => {
                        let text = String::from_utf8_lossy(&line).into_owned();
                        if send.send(Ok(text)).is_err() {
                            break;
                        }
                    }
                }
            }
        });
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let tail = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut block = [0u8; 4096];
            while let Ok(n) = err.read(&mut block) {
                if n == 0 {
                    break;
                }
                if let Ok(mut tail) = tail.lock() {
                    tail.extend_from_slice(&block[..n]);
                    let over = tail.len().saturating_sub(STDERR_TAIL);
                    tail.drain(..over);
                }
            }
        });
        Ok(Worker { child, stdin: Some(stdin), lines, stderr, deadline: Instant::now() + limit, interrupted })
    }

    /// Gives the following requests `limit` from now on.
    pub fn allow(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
    }

    /// One request and its reply.
    ///
    /// # Errors
    /// The worker ended, hung or raised (an outcome), broke the protocol, or the user interrupted.
    pub fn ask(&mut self, request: &Value) -> Result<Value, Stop> {
        let mut line = request.to_string();
        line.push('\n');
        let written = self
            .stdin
            .as_mut()
            .is_some_and(|s| s.write_all(line.as_bytes()).and_then(|()| s.flush()).is_ok());
        if !written {
            return Err(self.ended());
        }
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                self.kill();
                return Err(Stop::Failed(WorkerError::Interrupted));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.kill();
                return Err(Stop::Ended(Ended::TimedOut));
            }
            match self.lines.recv_timeout(left.min(Duration::from_millis(100))) {
                Ok(Ok(text)) => return self.reply(&text),
                Ok(Err(why)) => return Err(Stop::Failed(WorkerError::Protocol(why))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = self.ended();
                    // A Ctrl-C reaches the worker too: its end is then no outcome.
                    return Err(if self.interrupted.load(Ordering::Relaxed) {
                        Stop::Failed(WorkerError::Interrupted)
                    } else {
                        ended
                    });
                }
            }
        }
    }

    fn reply(&mut self, text: &str) -> Result<Value, Stop> {
        let broken = |why: &str| {
            let shown: String = text.trim_end().chars().take(200).collect();
            Stop::Failed(WorkerError::Protocol(format!("{why}: `{shown}`")))
        };
        let value: Value = serde_json::from_str(text).map_err(|_| broken("a reply that is not JSON"))?;
        match value.get("type").and_then(Value::as_str) {
            Some("raised") => {
                let field = |k: &str| value.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
                Err(Stop::Ended(Ended::Raised { stage: field("stage"), message: field("message") }))
            }
            Some("fault") => {
                let message = value.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
                Err(Stop::Failed(WorkerError::Fault(message)))
            }
            Some(_) => Ok(value),
            None => Err(broken("a reply without a type")),
        }
    }

    /// Lets it go; a worker that does not end by itself is killed.
    pub fn quit(mut self) {
        if let Some(stdin) = self.stdin.as_mut() {
            let _ = stdin.write_all(b"{\"type\": \"quit\"}\n");
        }
        self.stdin = None;
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn ended(&mut self) -> Stop {
        self.stdin = None;
        // A process that closed its output without ending gets a moment.
        let mut status = None;
        for _ in 0..200 {
            match self.child.try_wait() {
                Ok(Some(s)) => {
                    status = Some(s);
                    break;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(_) => break,
            }
        }
        if status.is_none() {
            self.kill();
        }
        // Its standard error is read by another thread, which has a moment to finish.
        std::thread::sleep(Duration::from_millis(20));
        let words =
            self.stderr.lock().map(|t| String::from_utf8_lossy(&t).trim().to_owned()).unwrap_or_default();
        Stop::Ended(Ended::Crashed { status: status.map_or(-9, code), words })
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// The exit status, or minus the signal that ended it.
fn code(status: ExitStatus) -> i64 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return -i64::from(signal);
        }
    }
    status.code().map_or(-9, i64::from)
}
