//! The worker process: the only place where NVRTC is loaded.
//!
//! In: frames on the standard input the process was started with. Out: frames on the standard output it was started
//! with, moved to a descriptor of their own, so that anything that prints cannot damage them. The process dies with
//! the thread that started it, has no core dumps, no writable file, few descriptors, and after `Start` sees only the
//! folders named there (where the kernel has Landlock).

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::ffi::Nvrtc;
use crate::protocol::{
    Answer, CompileRequest, Compiled, LoweredKernel, Output, Request, WorkerLimits, read_frame, write_frame,
};
use crate::{identity, landlock};

/// Runs a compile worker until its input ends; the exit code for the process.
///
/// The program named in [`crate::WorkerCommand`] calls this before it does anything else and exits with the result.
pub fn worker_main() -> i32 {
    match serve() {
        Ok(()) => 0,
        // The other end is gone or speaks nonsense: nobody is left to tell.
        Err(_) => 1,
    }
}

fn serve() -> io::Result<()> {
    // SAFETY: plain numbers; the process has one thread.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        // Ctrl-C goes to the whole process group; what it means is for the process that asked to decide.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
    limit(libc::RLIMIT_CORE, 0)?;
    let mut input = BufReader::new(move_away(0)?);
    let mut output = BufWriter::new(move_away(1)?);
    std::env::set_current_dir("/")?;
    let mut nvrtc: Option<(Nvrtc, WorkerLimits)> = None;
    while let Some(request) = read_frame::<Request>(&mut input)? {
        let answer = match request {
            Request::Setup { library, headers } => setup(&library, headers),
            Request::Start { library, read_dirs, limits } => {
                start(&library, &read_dirs, &limits).map(|(loaded, confined)| {
                    nvrtc = Some((loaded, limits));
                    Answer::Ready { confined }
                })
            }
            Request::Compile(request) => match &nvrtc {
                Some((nvrtc, limits)) => compile(nvrtc, limits, &request),
                None => Err("asked to compile before it was started".into()),
            },
        };
        CPU_DEADLINE.store(0, Ordering::Relaxed);
        write_frame(&mut output, &answer.unwrap_or_else(|message| Answer::Failed { message }))?;
    }
    Ok(())
}

/// Moves descriptor `fd` to a private one and leaves `/dev/null` in its place.
fn move_away(fd: c_int) -> io::Result<File> {
    // SAFETY: the descriptors are checked; the new one is owned by nobody else.
    unsafe {
        let private = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3);
        if private < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = File::from_raw_fd(private);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null < 0 || libc::dup2(null, fd) < 0 {
            return Err(io::Error::last_os_error());
        }
        if null != fd {
            libc::close(null);
        }
        Ok(file)
    }
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = c_int;

fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let both = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `both` lives across the call.
    if unsafe { libc::setrlimit(resource, &both) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Exit code of a worker that used up its processor time.
pub(crate) const OUT_OF_TIME: i32 = 79;

/// Processor time at which the process ends, in milliseconds; 0 while nothing runs.
static CPU_DEADLINE: AtomicU64 = AtomicU64::new(0);

fn cpu_millis() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live out-pointer.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    (time.tv_sec as u64).saturating_mul(1000).saturating_add(time.tv_nsec as u64 / 1_000_000)
}

/// Ends the process when its processor time is over. `RLIMIT_CPU` is set as well, but was measured not to end a
/// process inside NVRTC 13.5.
fn watch_cpu() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let deadline = CPU_DEADLINE.load(Ordering::Relaxed);
            if deadline != 0 && cpu_millis() > deadline {
                // SAFETY: ends the process at once, without running anything of NVRTC's.
                unsafe { libc::_exit(OUT_OF_TIME) };
            }
        }
    });
}

/// Lets the process use `seconds` of processor time from now on.
fn limit_cpu_from_now(seconds: u64) -> Result<(), String> {
    let millis = cpu_millis();
    CPU_DEADLINE.store(millis.saturating_add(seconds.saturating_mul(1000)), Ordering::Relaxed);
    // SAFETY: `limits` is plain data that the calls fill or read.
    unsafe {
        let mut limits: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_CPU, &mut limits);
        // Two seconds more: the clock counts whole seconds, and the watch is to be first.
        limits.rlim_cur = (millis / 1000).saturating_add(seconds).saturating_add(2).min(limits.rlim_max);
        if libc::setrlimit(libc::RLIMIT_CPU, &limits) != 0 {
            return Err(format!("cannot limit processor time: {}", io::Error::last_os_error()));
        }
    }
    Ok(())
}

fn setup(library: &Path, headers: Option<PathBuf>) -> Result<Answer, String> {
    let nvrtc = Nvrtc::load(library)?;
    let (major, minor) = nvrtc.version()?;
    if major < 12 {
        return Err(format!("is NVRTC {major}.{minor}, older than the 12.0 that is needed"));
    }
    let has_headers = match headers {
        Some(target) => nvrtc.install_headers(&target)?,
        None => false,
    };
    let probe = nvrtc.compile(
        "__global__ void probe() {}",
        "probe.cu",
        &[],
        &["--gpu-architecture=sm_90".into()],
        &[],
        true,
    )?;
    let output = probe.output.ok_or_else(|| {
        format!("does not compile an empty kernel: {}", String::from_utf8_lossy(&probe.log).trim())
    })?;
    let ptx = String::from_utf8_lossy(&output.ptx).into_owned();
    // The header comment carries the full version: `release 13.5, V13.5.37`.
    let version = ptx
        .lines()
        .take_while(|l| l.starts_with("//") || l.trim().is_empty())
        .find_map(|l| l.split(", V").nth(1))
        .map_or_else(|| format!("{major}.{minor}"), |v| v.trim().to_owned());
    Ok(Answer::Setup { version, has_headers })
}

fn start(library: &Path, read_dirs: &[PathBuf], limits: &WorkerLimits) -> Result<(Nvrtc, bool), String> {
    let system = |e: io::Error| format!("cannot limit itself: {e}");
    limit(libc::RLIMIT_FSIZE, 0).map_err(system)?;
    limit(libc::RLIMIT_NOFILE, 64).map_err(system)?;
    limit(libc::RLIMIT_AS, limits.memory_bytes).map_err(system)?;
    let nvrtc = Nvrtc::load(library)?;
    // Warm up before the view closes: the first compilation loads the builtins library and what that needs.
    limit_cpu_from_now(limits.cpu_seconds)?;
    let warm = nvrtc.compile(
        "__global__ void warm(float* x) { x[0] = 1.0f; }",
        "warm.cu",
        &[],
        &["--gpu-architecture=sm_90".into()],
        &[],
        true,
    )?;
    if warm.output.is_none() {
        return Err(format!(
            "does not compile a plain kernel: {}",
            String::from_utf8_lossy(&warm.log).trim()
        ));
    }
    let mut confined = false;
    if limits.landlock && landlock::abi() > 0 {
        let threads = std::fs::read_dir("/proc/self/task").map(|d| d.count()).unwrap_or(1);
        if threads > 1 {
            return Err(format!("has {threads} threads and cannot be confined"));
        }
        let dirs: Vec<&Path> = read_dirs.iter().map(PathBuf::as_path).collect();
        landlock::confine(&dirs)?;
        confined = true;
    }
    // Only now: a thread that exists before would not be confined.
    watch_cpu();
    Ok((nvrtc, confined))
}

fn compile(nvrtc: &Nvrtc, limits: &WorkerLimits, request: &CompileRequest) -> Result<Answer, String> {
    limit_cpu_from_now(limits.cpu_seconds)?;
    let outcome = nvrtc.compile(
        &request.source,
        &request.file_name,
        &request.headers,
        &request.options,
        &request.names,
        !request.check_only,
    )?;
    let log = capped(&outcome.log, limits.log_bytes);
    let Some(raw) = outcome.output else {
        return Ok(Answer::Compiled(Compiled { log, output: None }));
    };
    if request.check_only {
        let output = Output { ptx: String::new(), kernels: vec![] };
        return Ok(Answer::Compiled(Compiled { log, output: Some(output) }));
    }
    let ptx = String::from_utf8(raw.ptx).map_err(|_| "NVRTC gave PTX that is not UTF-8".to_owned())?;
    let cubin = identity::Cubin::parse(&raw.cubin)?;
    let mut kernels = Vec::with_capacity(raw.entries.len());
    for entry in raw.entries {
        let identity = cubin.identity(&entry)?;
        kernels.push(LoweredKernel { entry, identity: identity.sha256, unresolved: identity.unresolved });
    }
    Ok(Answer::Compiled(Compiled { log, output: Some(Output { ptx, kernels }) }))
}

/// The log as text, at most `bytes` long, with a last line that says so when it was cut.
fn capped(log: &[u8], bytes: u64) -> String {
    let log = log.strip_suffix(b"\0").unwrap_or(log);
    let keep = usize::try_from(bytes).unwrap_or(usize::MAX).min(log.len());
    let mut text = String::from_utf8_lossy(&log[..keep]).into_owned();
    if keep < log.len() {
        text.push_str(&format!("\n[log cut after {keep} of {} bytes]\n", log.len()));
    }
    text
}
