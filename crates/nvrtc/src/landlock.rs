//! Takes a process's view of the file system away, except for reading below given folders.
//!
//! Linux Landlock through raw system calls (kernel documentation: `userspace-api/landlock`). The calling thread and
//! whatever it starts later are confined; threads that exist already are not, so callers check that there are none.
//! Not covered: files that are open already, and on kernels before 6.7 the network.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;
const VERSION_FLAG: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;

#[repr(C)]
struct RulesetAttr {
    handled_fs: u64,
    handled_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent_fd: i32,
}

/// The kernel's Landlock version; 0 where it has none.
pub(crate) fn abi() -> i64 {
    // SAFETY: with a null attribute and the version flag the call only answers a number.
    let version =
        unsafe { libc::syscall(CREATE_RULESET, std::ptr::null::<RulesetAttr>(), 0usize, VERSION_FLAG) };
    version.max(0)
}

/// Confines this thread and its future children to reading below `dirs`.
pub(crate) fn confine(dirs: &[&Path]) -> Result<(), String> {
    let abi = abi();
    if abi == 0 {
        return Err("the kernel has no Landlock".into());
    }
    // Rights were added with versions: 13 at first, then refer (2), truncate (3), device ioctl (5).
    let fs_rights = match abi {
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    let attr = RulesetAttr {
        handled_fs: (1 << fs_rights) - 1,
        handled_net: if abi >= 4 { 0b11 } else { 0 },
        scoped: if abi >= 6 { 0b11 } else { 0 },
    };
    let attr_size = match abi {
        1..=3 => 8usize,
        4 | 5 => 16,
        _ => 24,
    };
    let fail = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    // SAFETY: `attr` lives across the call and is at least `attr_size` bytes.
    let ruleset = unsafe { libc::syscall(CREATE_RULESET, &raw const attr, attr_size, 0u32) };
    if ruleset < 0 {
        return Err(fail("landlock_create_ruleset"));
    }
    let ruleset = ruleset as i32;
    let result = dirs
        .iter()
        .try_for_each(|dir| {
            let path = std::ffi::CString::new(dir.as_os_str().as_bytes())
                .map_err(|_| "a NUL byte in a path".to_owned())?;
            // SAFETY: `path` is NUL-terminated.
            let fd = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
            if fd < 0 {
                return Err(fail(&format!("cannot open `{}`", dir.display())));
            }
            let rule = PathBeneath { allowed: READ_FILE | READ_DIR, parent_fd: fd };
            // SAFETY: `rule` lives across the call; both descriptors are open.
            let added = unsafe { libc::syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &raw const rule, 0u32) };
            // SAFETY: `fd` was opened above and is not used afterwards.
            unsafe { libc::close(fd) };
            if added != 0 { Err(fail("landlock_add_rule")) } else { Ok(()) }
        })
        .and_then(|()| {
            // SAFETY: plain numbers.
            if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
                return Err(fail("prctl(PR_SET_NO_NEW_PRIVS)"));
            }
            // SAFETY: `ruleset` is open.
            if unsafe { libc::syscall(RESTRICT_SELF, ruleset, 0u32) } != 0 {
                return Err(fail("landlock_restrict_self"));
            }
            Ok(())
        });
    // SAFETY: `ruleset` was opened above and is not used afterwards.
    unsafe { libc::close(ruleset) };
    result
}
