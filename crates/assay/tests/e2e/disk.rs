//! Full and unwritable disks: exit 74, nothing half-written, and a run that continues once there is space.

use std::fs::File;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Running, audit, command, database, files, fixture, forget_times};

/// A file system of its own with room for so many KiB, gone with the value.
struct Small(tempfile::TempDir);

impl Small {
    /// None, with a line that says so, where the system does not let us mount one.
    fn mount(kib: u32) -> Option<Small> {
        let dir = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status();
        if done.is_ok_and(|s| s.success()) {
            return Some(Small(dir));
        }
        println!("skipped: mounting a small file system is not permitted here");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn grow(&self, kib: u32) {
        let done =
            Command::new("mount").args(["-o", &format!("remount,size={kib}k")]).arg(self.path()).status();
        assert!(done.is_ok_and(|s| s.success()), "remount");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// What a run that failed may leave: its database, which says how far it came.
fn only_a_sound_database(run: &Path) {
    for name in files(run) {
        assert!(
            ["manifest.json", "run.db", "run.db-shm", "run.db-wal", "run.lock"].contains(&name.as_str()),
            "`{name}` was left behind: {:?}",
            files(run)
        );
    }
}

#[test]
fn an_audit_on_a_full_disk_ends_with_74_and_continues_when_there_is_space() {
    let Some(disk) = Small::mount(256) else { return };
    let run = disk.path().join("run");
    Running::start(&mut audit("problems/add_clamp", &run, &["--jobs", "1"]))
        .finish()
        .exits(74)
        .says(&["--resume"]);
    only_a_sound_database(&run);
    // Still full: no other answer.
    Running::start(&mut audit("problems/add_clamp", &run, &["--resume"])).finish().exits(74);
    disk.grow(64 << 10);
    let mut summary =
        Running::start(&mut audit("problems/add_clamp", &run, &["--resume"])).finish().exits(0).json();
    forget_times(&mut summary);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(summary, crate::support::audited("problems/add_clamp", &dir.path().join("run"), &[]));
    let sound: String =
        database(&run).unwrap().query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn an_audit_that_cannot_even_begin_its_database_ends_with_74_and_can_be_started_again() {
    let Some(disk) = Small::mount(16) else { return };
    let run = disk.path().join("run");
    Running::start(&mut audit("problems/add_clamp", &run, &[])).finish().exits(74);
    only_a_sound_database(&run);
    disk.grow(64 << 10);
    // Nothing was begun, so there is nothing to resume and nothing in the way.
    Running::start(&mut audit("problems/add_clamp", &run, &[])).finish().exits(0);
}

fn save(to: &Path) -> Command {
    let mut c = command(&[
        "run",
        &fixture("kernels/faults.cu"),
        "--kernel",
        "fill",
        "--grid",
        "400",
        "--block",
        "256",
    ]);
    c.args(["--arg", "y=f32[100000]:uninit", "--arg", "n=i32:100000", "--save"]).arg(to);
    c
}

#[test]
fn saving_to_a_full_disk_ends_with_74_and_leaves_no_file() {
    let Some(disk) = Small::mount(256) else { return };
    let to = disk.path().join("out.safetensors");
    Running::start(&mut save(&to)).finish().exits(74).says(&["out.safetensors"]);
    assert_eq!(files(disk.path()), Vec::<String>::new());
    // What was there before stays as it was.
    std::fs::write(&to, "precious").unwrap();
    Running::start(&mut save(&to)).finish().exits(74);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "precious");
    assert_eq!(files(disk.path()), ["out.safetensors"]);
}

#[test]
fn saving_replaces_no_pipe_no_folder_and_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    Running::start(&mut save(&pipe)).finish().exits(74).says(&["pipe", "not a regular file"]);
    Running::start(&mut save(dir.path())).finish().exits(74).says(&["not a regular file"]);
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe is still one");
    let (file, link) = (dir.path().join("real"), dir.path().join("link"));
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    Running::start(&mut save(&link)).finish().exits(0);
    assert!(
        std::fs::symlink_metadata(&link).unwrap().is_symlink()
            && std::fs::metadata(&file).unwrap().len() > 400_000
    );
    assert_eq!(files(dir.path()), ["link", "pipe", "real"]);
}

#[test]
fn folders_that_cannot_be_written_end_with_74() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    // Also for a user who may write anywhere: below a file, and where the system itself refuses.
    for folder in [file.join("below"), PathBuf::from("/proc/assay-run")] {
        Running::start(&mut audit("problems/add_clamp", &folder, &[]))
            .finish()
            .exits(74)
            .says(&[folder.to_str().unwrap()]);
        let to = folder.join("out.safetensors");
        Running::start(&mut save(&to)).finish().exits(74).says(&[folder.to_str().unwrap()]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "not a folder");
}

#[test]
fn a_full_stdout_ends_with_74_and_a_full_stderr_changes_no_exit_code() {
    let full = || File::options().write(true).open("/dev/full");
    if full().is_err() {
        println!("skipped: no /dev/full here");
        return;
    }
    for args in [vec!["protocols"], vec!["mutators", "--json"]] {
        let status = command(&args).stdout(full().unwrap()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(74), "{args:?}");
    }
    for args in [vec!["--frobnicate"], vec!["mutate", "/no/such.cu"]] {
        let status = command(&args).stdout(Stdio::null()).stderr(full().unwrap()).status().unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}
