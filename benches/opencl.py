#!/usr/bin/env python3
"""Measures PoCL and Oclgrind on the kernels of `benches/kernels/*.cl`, which are those of the CUDA files beside them.

    python3 benches/opencl.py            both, each in a process of its own; `skipped` where one is not installed
    python3 benches/opencl.py --n 256    another size of the matmul (under Oclgrind it is always 64)

Debian: `apt install pocl-opencl-icd oclgrind ocl-icd-libopencl1`. One core: the process is pinned, PoCL gets one worker
thread, and times are processor time, so that other work on the machine does not count. PoCL's cache of compiled kernels
is off, and the first launch counts as building: PoCL compiles there. Results are checked against Python's own sums.
"""

import argparse
import array
import ctypes
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
READ_ONLY, WRITE_ONLY, COPY = 1 << 2, 1 << 1, 1 << 5
PLATFORM_NAME, PLATFORM_VERSION, BUILD_LOG = 0x0902, 0x0901, 0x1183


class OpenCL:
    """As much of the OpenCL 1.2 API as two kernels need. Errors end the process with the call's name."""

    def __init__(self, wanted):
        # Oclgrind puts itself in the place of the library; otherwise the system's loader knows the platforms.
        self.lib = ctypes.CDLL(None)
        if not hasattr(self.lib, "clGetPlatformIDs"):
            self.lib = ctypes.CDLL("libOpenCL.so.1")
        count = ctypes.c_uint()
        self.call("clGetPlatformIDs", ctypes.c_uint(0), None, ctypes.byref(count))
        platforms = (ctypes.c_void_p * count.value)()
        self.call("clGetPlatformIDs", count, platforms, None)
        for p in map(ctypes.c_void_p, platforms):
            self.name = self.text(p, PLATFORM_NAME)
            if wanted in self.name:
                self.version = self.text(p, PLATFORM_VERSION)
                break
        else:
            raise LookupError(f"no OpenCL platform named {wanted}")
        self.device = ctypes.c_void_p()
        self.call("clGetDeviceIDs", p, ctypes.c_ulong(0xFFFFFFFF), ctypes.c_uint(1), ctypes.byref(self.device), None)
        self.context = self.make("clCreateContext", None, ctypes.c_uint(1), ctypes.byref(self.device), None, None)
        self.queue = self.make("clCreateCommandQueue", self.context, self.device, ctypes.c_ulong(0))

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status != 0:
            sys.exit(f"{name} failed with {status}")

    def make(self, name, *args):
        f = getattr(self.lib, name)
        f.restype = ctypes.c_void_p
        status = ctypes.c_int()
        made = f(*args, ctypes.byref(status))
        if status.value != 0:
            sys.exit(f"{name} failed with {status.value}")
        return ctypes.c_void_p(made)

    def text(self, platform, what):
        out = ctypes.create_string_buffer(1024)
        self.call("clGetPlatformInfo", platform, ctypes.c_uint(what), ctypes.c_size_t(1024), out, None)
        return out.value.decode()

    def kernel(self, name):
        source = ctypes.c_char_p((HERE / "kernels" / f"{name}.cl").read_bytes())
        program = self.make("clCreateProgramWithSource", self.context, ctypes.c_uint(1), ctypes.byref(source), None)
        status = self.lib.clBuildProgram(program, ctypes.c_uint(0), None, b"", None, None)
        if status != 0:
            log = ctypes.create_string_buffer(65536)
            self.lib.clGetProgramBuildInfo(
                program, self.device, ctypes.c_uint(BUILD_LOG), ctypes.c_size_t(65536), log, None
            )
            sys.exit(log.value.decode())
        return self.make("clCreateKernel", program, name.encode())

    def buffer(self, values, flags):
        data = (ctypes.c_char * (4 * len(values))).from_buffer(values)
        return self.make(
            "clCreateBuffer", self.context, ctypes.c_ulong(flags | COPY), ctypes.c_size_t(4 * len(values)), data
        )

    def set_args(self, kernel, args):
        for k, a in enumerate(args):
            a = a if isinstance(a, ctypes.c_void_p) else ctypes.c_int(a)
            self.call("clSetKernelArg", kernel, ctypes.c_uint(k), ctypes.c_size_t(ctypes.sizeof(a)), ctypes.byref(a))

    def launch(self, kernel, grid, block):
        pair = ctypes.c_size_t * len(grid)
        total = pair(*(g * b for g, b in zip(grid, block)))
        self.call(
            "clEnqueueNDRangeKernel", self.queue, kernel, ctypes.c_uint(len(grid)), None, total, pair(*block),
            ctypes.c_uint(0), None, None,
        )
        self.call("clFinish", self.queue)

    def read(self, buffer, count):
        out = array.array("f", bytes(4 * count))
        data = (ctypes.c_char * (4 * count)).from_buffer(out)
        self.call(
            "clEnqueueReadBuffer", self.queue, buffer, ctypes.c_uint(1), ctypes.c_size_t(0),
            ctypes.c_size_t(4 * count), data, ctypes.c_uint(0), None, None,
        )
        return out


def timed(f):
    started = time.process_time()
    f()
    return time.process_time() - started


def best(f, seconds):
    """Shortest of at least one run, and of as many as fit in `seconds`."""
    runs = [timed(f)]
    while sum(runs) < seconds:
        runs.append(timed(f))
    return min(runs)


def numbers(count, seed):
    out, state = array.array("f"), seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        out.append(state / (1 << 31) - 0.5)
    return out


def matmul(cl, n, seconds):
    a, b, c = numbers(n * n, 1), numbers(n * n, 2), array.array("f", bytes(4 * n * n))
    started = time.process_time()
    kernel = cl.kernel("matmul")
    out = cl.buffer(c, WRITE_ONLY)
    cl.set_args(kernel, [cl.buffer(a, READ_ONLY), cl.buffer(b, READ_ONLY), out, n, n, n])
    run = lambda: cl.launch(kernel, (n // 16, n // 16), (16, 16))
    run()
    first = time.process_time() - started
    t = best(run, seconds)
    c = cl.read(out, n * n)
    worst = 0.0
    for k in range(50):
        i, j = k * 7919 % n, k * 104729 % n
        worst = max(worst, abs(c[i * n + j] - math.fsum(a[i * n + q] * b[q * n + j] for q in range(n))))
    if not worst < 1e-3:
        sys.exit(f"matmul: error {worst}")
    print(f"  matmul n={n}: {2 * n**3 / t / 1e9:.4g} GFLOP/s, {t * 1e3:.3g} ms, build {max(first - t, 0):.2f} s")


def softmax(cl, rows, d, seconds):
    x, y = numbers(rows * d, 3), array.array("f", bytes(4 * rows * d))
    started = time.process_time()
    kernel = cl.kernel("softmax")
    out = cl.buffer(y, WRITE_ONLY)
    cl.set_args(kernel, [cl.buffer(x, READ_ONLY), out, d])
    run = lambda: cl.launch(kernel, (rows,), (256,))
    run()
    first = time.process_time() - started
    t = best(run, seconds)
    y = cl.read(out, rows * d)
    total = math.fsum(math.exp(v) for v in x[:d])
    worst = max(abs(y[k] * total / math.exp(x[k]) - 1) for k in range(d))
    if not worst < 1e-3:
        sys.exit(f"softmax: relative error {worst}")
    print(
        f"  softmax {rows}x{d}: {t * 1e9 / (rows * d):.4g} ns an element, {t * 1e3:.3g} ms, "
        f"build {max(first - t, 0):.2f} s"
    )


def child(wanted, n, seconds):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        cl = OpenCL(wanted)
    except (OSError, LookupError) as e:
        print(f"  skipped: {e}")
        return
    print(f"  {cl.name}, {cl.version}")
    matmul(cl, n, seconds)
    if wanted == "Oclgrind":
        softmax(cl, 2, 1024, seconds)
    else:
        softmax(cl, 64, 4096, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=512, help="size of the matmul, a multiple of 16")
    parser.add_argument("--platform", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.platform:
        child(args.platform, args.n, 1.0 if args.platform != "Oclgrind" else 0.0)
        return
    me = [sys.executable, str(HERE / "opencl.py"), "--platform"]
    env = dict(os.environ, POCL_KERNEL_CACHE="0", POCL_MAX_PTHREAD_COUNT="1", PYTHONUNBUFFERED="1")
    print("PoCL, without checks", flush=True)
    subprocess.run([*me, "Portable Computing Language", "--n", str(args.n)], env=env, check=False)
    for title, flags in [
        ("Oclgrind", []),
        ("Oclgrind --data-races --uninitialized", ["--data-races", "--uninitialized"]),
    ]:
        print(title, flush=True)
        oclgrind = shutil.which("oclgrind")
        if oclgrind is None:
            print("  skipped: `oclgrind` is not installed")
            continue
        subprocess.run([oclgrind, *flags, *me, "Oclgrind", "--n", "64"], env=env, check=False)


if __name__ == "__main__":
    main()
