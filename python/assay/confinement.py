"""Takes from this process what a submission has no use for: the network, other processes, other files, endless memory.

Called in a child of the fork server before a line of the submission runs, and never undone. Three layers, each of which
the system may refuse; what was taken is reported and what was not is a warning of `assay`:

- *limits* (`setrlimit`): address space, processor time, size of a file, open files, core dumps; processes too, which
  the system does not count for root.
- *landlock*: reading below the interpreter's and the system's own folders and the submission's private one, writing
  below the private one alone; no TCP, no signals and no abstract sockets beyond the domain where the kernel knows how.
- *seccomp*: no new process (threads are allowed), no program started, no socket of any kind, no signal to another
  process, no tracing, no other process's memory or limits, no mounts, namespaces, keys, `io_uring` or `bpf`.

Linux on x86-64 and aarch64; elsewhere only the limits. What this does not hide: files that are readable below the
folders named, the clock, and whatever the processor leaks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38
CLONE_THREAD = 0x00010000
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
NAMESPACES = 0x7E020000

# What a compiler needs, whose driver starts the compiler proper, the assembler and the linker.
STARTS_PROCESSES = {"fork", "vfork", "execve"}

# System calls by number, (x86-64, aarch64); None where the machine has no such call.
REFUSED = {
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendto": (44, 206),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "tkill": (200, 130),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "setpriority": (141, 140),
    "open_by_handle_at": (304, 265),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "setpgid": (109, 154),
    "setsid": (112, 157),
}
CLONE, CLONE3 = (56, 220), (435, 435)
KILL, TGKILL, PRLIMIT = (62, 129), (234, 131), (302, 261)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def libc():
    return ctypes.CDLL(None, use_errno=True)


def failed(what):
    return OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def limit(limits):
    """Sets the limits of a dict: `memory` (bytes of address space beyond what is mapped now), `cpu` (seconds from now),
    `file` (bytes), `files`, `processes`."""

    def put(which, value):
        _, hard = resource.getrlimit(which)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(which, (value, value))

    with open("/proc/self/statm", encoding="ascii") as f:
        mapped = int(f.read().split()[0]) * resource.getpagesize()
    used = resource.getrusage(resource.RUSAGE_SELF)
    put(resource.RLIMIT_CORE, 0)
    put(resource.RLIMIT_AS, mapped + limits["memory"])
    put(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + limits["cpu"])
    put(resource.RLIMIT_FSIZE, limits["file"])
    put(resource.RLIMIT_NOFILE, limits["files"])
    put(resource.RLIMIT_NPROC, limits["processes"])


def landlock(readable, writable):
    """Reading below `readable`, everything below `writable`; paths that do not exist are passed over."""
    c = libc()
    abi = c.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    if abi <= 0:
        raise OSError("the kernel has no Landlock")
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    attributes = struct.pack("=QQQ", rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = c.syscall(LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint(0))
    if ruleset < 0:
        raise failed("landlock_create_ruleset")
    try:
        for paths, allowed in ((readable, READ_FILE | READ_DIR | EXECUTE), (writable, rights)):
            for path in paths:
                try:
                    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
                except OSError:
                    continue
                # Rights of folders cannot be given for a file.
                mask = allowed if os.path.isdir(path) else allowed & (READ_FILE | WRITE_FILE | EXECUTE | 1 << 14)
                rule = struct.pack("=Qi", mask & rights, handle)
                added = c.syscall(LANDLOCK_ADD_RULE, ruleset, 1, rule, ctypes.c_uint(0))
                os.close(handle)
                if added != 0:
                    raise failed(f"landlock_add_rule for `{path}`")
        if c.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise failed("prctl(PR_SET_NO_NEW_PRIVS)")
        if c.syscall(LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint(0)) != 0:
            raise failed("landlock_restrict_self")
    finally:
        os.close(ruleset)


def program(machine, own, processes=False):
    """The filter, in classic BPF: a list of (code, jump if true, jump if false, constant). With `processes` new
    processes and programs are allowed."""
    column, audit = ARCHITECTURES[machine]
    load, equal, greater_equal, anded, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    # Where the number, the architecture and the low half of the first argument stand in what a filter sees.
    number, arch, first = 0, 4, 16
    lines = [
        (load, 0, 0, arch),
        (equal, 1, 0, audit),
        (answer, 0, 0, ERRNO | EPERM),
        (load, 0, 0, number),
    ]
    if machine == "x86_64":
        # The x32 calls have numbers of their own.
        lines += [(greater_equal, 0, 1, 0x40000000), (answer, 0, 0, ERRNO | EPERM)]
    for name, numbers in REFUSED.items():
        if numbers[column] is not None and not (processes and name in STARTS_PROCESSES):
            lines += [(equal, 0, 1, numbers[column]), (answer, 0, 0, ERRNO | EPERM)]
    # The C library tries `clone3` first and falls back to `clone`, whose flags can be looked at.
    lines += [(equal, 0, 1, CLONE3[column]), (answer, 0, 0, ERRNO | ENOSYS)]
    if not processes:
        lines += [
            (equal, 0, 4, CLONE[column]),
            (load, 0, 0, first),
            (anded, 0, 1, CLONE_THREAD),
            (answer, 0, 0, ALLOW),
            (answer, 0, 0, ERRNO | EPERM),
        ]
    else:
        # Namespaces are refused to a compiler as well.
        lines += [
            (equal, 0, 4, CLONE[column]),
            (load, 0, 0, first),
            (anded, 0, 1, NAMESPACES),
            (answer, 0, 0, ERRNO | EPERM),
            (answer, 0, 0, ALLOW),
        ]
    # Only to itself: `kill(own, …)`, `tgkill(own, …)`, `prlimit(0 or own, …)`.
    for call, allowed in ((KILL, [own]), (TGKILL, [own]), (PRLIMIT, [0, own])):
        tests = [(load, 0, 0, first)]
        for i, pid in enumerate(allowed):
            tests.append((equal, len(allowed) - i, 0, pid))
        tests.append((answer, 0, 0, ERRNO | EPERM))
        tests.append((answer, 0, 0, ALLOW))
        lines += [(equal, 0, len(tests), call[column]), *tests]
    lines.append((answer, 0, 0, ALLOW))
    return lines


def seccomp(processes=False):
    machine = platform.machine()
    if machine not in ARCHITECTURES or sys.byteorder != "little":
        raise OSError(f"no system-call filter for {machine}")
    lines = program(machine, os.getpid(), processes)
    text = b"".join(struct.pack("=HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(text, len(text))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    whole = Program(len(lines), ctypes.addressof(buffer))
    c = libc()
    if c.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise failed("prctl(PR_SET_NO_NEW_PRIVS)")
    if c.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(whole), 0, 0) != 0:
        raise failed("prctl(PR_SET_SECCOMP)")


def folders():
    """Where an interpreter and its libraries are, and what they read of the system."""
    out = {"/usr", "/lib", "/lib64", "/bin", "/etc", "/sys/devices/system", "/dev/null", "/dev/urandom", "/dev/zero"}
    out.update({"/proc", "/opt", sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.realpath(sys.executable)})
    out.update(p for p in sys.path if p and os.path.isabs(p))
    return sorted(out)


def confine(private, limits):
    """Confines this process; the names of the layers that hold, and the messages of those that do not."""
    held, missing = [], []
    # The folders first: what they read needs no permission yet.
    readable = folders()
    layers = [("limits", lambda: limit(limits))]
    if sys.platform == "linux":
        layers.append(("landlock", lambda: landlock(readable, [private, "/dev/null"])))
        layers.append(("seccomp", seccomp))
    else:
        missing.append(f"landlock and seccomp: none on {sys.platform}")
    for name, layer in layers:
        try:
            layer()
            held.append(name)
        except (OSError, ValueError, AttributeError) as e:
            missing.append(f"{name}: {e}")
    return held, missing


def confine_compiler(readable, private, limits):
    """Confines this process before it becomes a compiler: it reads below `readable`, writes below `private`, and may
    start programs, which inherit all of this. The messages of the layers that do not hold."""
    missing = []
    if sys.platform != "linux":
        return [f"landlock and seccomp: none on {sys.platform}"]
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives", "/dev/urandom"]
    layers = [
        ("limits", lambda: limit(limits)),
        ("landlock", lambda: landlock([*system, *readable], [private, "/dev/null"])),
        ("seccomp", lambda: seccomp(processes=True)),
    ]
    for name, layer in layers:
        try:
            layer()
        except (OSError, ValueError, AttributeError) as e:
            missing.append(f"{name}: {e}")
    return missing
