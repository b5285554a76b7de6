//! Starting the binary, waiting for it, reading what it leaves behind.

use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand};
use serde_json::Value;

/// The binary under test.
pub const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// No command of these tests takes this long; one that does is ended and fails its test.
const LIMIT: Duration = Duration::from_secs(120);

/// A path below the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().expect(path)
}

/// A fixture, as an argument.
pub fn fixture(path: &str) -> String {
    repository(&format!("testdata/e2e/{path}")).to_str().expect("a UTF-8 path").to_owned()
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Answer {
    /// The answer, if the exit code is this one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Answer {
        let seen = (self.status.code(), self.status.signal());
        assert_eq!(seen, (Some(code), None), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }

    /// The answer, if stderr names all of these.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Answer {
        for w in words {
            assert!(self.stderr.contains(w), "no `{w}` in: {}\nstdout: {}", self.stderr, self.stdout);
        }
        self
    }
}

/// A started command, in a process group of its own so that all of it can be stopped.
pub struct Running {
    child: Child,
    started: Instant,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Running { child: command.spawn().expect("the binary starts"), started: Instant::now() }
    }

    /// Sends a signal to the command and everything it started, as a terminal does.
    pub fn signal(&self, signal: i32) {
        let group = i32::try_from(self.child.id()).expect("a process id");
        // SAFETY: plain numbers; the group was made by `start` and its leader is not yet waited for.
        assert_eq!(
            unsafe { libc::kill(-group, signal) },
            0,
            "signal {signal}: {}",
            std::io::Error::last_os_error()
        );
    }

    /// Kills the command alone, with no chance to tidy up; what it started goes on.
    pub fn kill_alone(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Is there still a process of the command's group, other than those that only wait to be reaped?
    pub fn group_lives(&self) -> bool {
        let group = self.child.id().to_string();
        let stats = std::fs::read_dir("/proc").expect("/proc").flatten().map(|e| e.path().join("stat"));
        stats.filter_map(|stat| std::fs::read_to_string(stat).ok()).any(|stat| {
            // `pid (name) state parent group …`; the name may hold anything.
            let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            let mut words = after_name.split(' ');
            let (state, of) = (words.next(), words.nth(1));
            of == Some(group.as_str()) && state != Some("Z")
        })
    }

    /// Has the command come to its end?
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    /// Sleeps until `ready` says so.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut ready: impl FnMut() -> bool) {
        while !ready() {
            let ended = self.child.try_wait().expect("wait");
            assert!(ended.is_none(), "it ended ({ended:?}) before {what}: {}", self.take_stderr());
            assert!(self.started.elapsed() < LIMIT, "no {what} within {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn take_stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            let _ = pipe.read_to_string(&mut text);
        }
        text
    }

    /// Waits for the end.
    #[track_caller]
    pub fn finish(mut self) -> Answer {
        fn reader<R: std::io::Read + Send + 'static>(pipe: Option<R>) -> std::thread::JoinHandle<String> {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut pipe) = pipe {
                    let _ = pipe.read_to_end(&mut bytes);
                }
                String::from_utf8(bytes).expect("output is UTF-8")
            })
        }
        let (out, err) = (reader(self.child.stdout.take()), reader(self.child.stderr.take()));
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break status;
            }
            if self.started.elapsed() > LIMIT {
                self.signal(libc::SIGKILL);
                panic!("no end within {LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = self.started.elapsed();
        Answer { status, stdout: out.join().expect("stdout"), stderr: err.join().expect("stderr"), took }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// The command with these arguments.
pub fn command(args: &[&str]) -> Command {
    let mut c = Command::new(ASSAY);
    c.args(args);
    c
}

/// Runs `assay` to its end.
#[track_caller]
pub fn assay(args: &[&str]) -> Answer {
    Running::start(&mut command(args)).finish()
}

/// `assay audit` over a fixture's folder of problems, into `out`.
pub fn audit(problems: &str, out: &Path, more: &[&str]) -> Command {
    let mut c = command(&["audit", "--json", "--problems", &fixture(problems), "--out"]);
    c.arg(out).args(more);
    c
}

/// Runs that audit and gives its summary.
#[track_caller]
pub fn audited(problems: &str, out: &Path, more: &[&str]) -> Value {
    let answer = Running::start(&mut audit(problems, out, more)).finish().exits(0);
    let mut summary = answer.json();
    assert_eq!(read_json(&out.join("summary.json")), summary, "stdout and summary.json are the same");
    forget_times(&mut summary);
    summary
}

/// Takes out what may differ between two runs of one audit.
pub fn forget_times(summary: &mut Value) {
    let map = summary.as_object_mut().expect("an object");
    assert!(map.shift_remove("timing").is_some() && map.shift_remove("environment").is_some());
}

/// A JSON file.
#[track_caller]
pub fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The files of a folder, sorted; nothing where it does not exist.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A run's database, for reading beside the process that writes it.
pub fn database(run: &Path) -> rusqlite::Result<rusqlite::Connection> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let c = rusqlite::Connection::open_with_flags(run.join("run.db"), flags)?;
    c.busy_timeout(Duration::from_secs(2))?;
    Ok(c)
}

/// Evaluations committed so far; none while there is no database.
pub fn evaluations(run: &Path) -> i64 {
    database(run).and_then(|c| c.query_row("SELECT count(*) FROM evaluations", [], |r| r.get(0))).unwrap_or(0)
}

/// How this binary is started as a compile worker.
fn worker() -> WorkerCommand {
    WorkerCommand { program: ASSAY.into(), args: vec!["__compile-worker".into()] }
}

/// A compiler that the tests of this binary share.
pub fn compiler() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let install = Install::locate_or_install(&worker(), &mut |_| {}).expect("NVRTC");
        Compiler::new(install, worker(), 2, Limits::default())
    })
}

/// A problem of the repository, by its folder.
pub fn problem(folder: &str) -> assay_problems::Problem {
    assay_problems::load(repository(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"))
}

/// Columns of the widest line.
pub fn widest(text: &str) -> (usize, &str) {
    use unicode_width::UnicodeWidthStr as _;
    text.lines().map(|l| (l.width(), l)).max_by_key(|l| l.0).unwrap_or((0, ""))
}
