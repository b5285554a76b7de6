"""A small parent of a worker, of `sweep_worker.py` above all (docs/sweep-worker.md), with numpy alone."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import numpy as np

WORKER = find_spec("assay.sweep_worker").origin
NUMPY = {
    "bool": np.bool_,
    "f16": np.float16,
    "bf16": np.uint16,  # its bits
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}


def operand(name, storage, dtype="f32", skip=0, transpose=False, place="device"):
    """An operand as the request `run` states it."""
    return {
        "name": name,
        "dtype": dtype,
        "storage": list(storage),
        "skip": skip,
        "transpose": transpose,
        "place": place,
    }


def bf16_bits(values):
    """float32 values as the upper halves of their bits; exact where the lower halves are zero."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Parent:
    """A worker process and the exchange of so many bytes."""

    def __init__(self, exchange_bytes=1 << 16, worker=WORKER):
        self.file = tempfile.NamedTemporaryFile(prefix="assay-exchange-")  # noqa: SIM115 -- closed in __exit__
        self.file.truncate(exchange_bytes)
        self.map = mmap.mmap(self.file.fileno(), exchange_bytes)
        self.bytes = exchange_bytes
        self.worker = subprocess.Popen(
            [sys.executable, worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.outputs = {}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.worker.kill()
        self.worker.communicate()
        self.file.close()

    def ask(self, request):
        """The reply to a request (or to a raw line), None if the worker ends instead."""
        line = request if isinstance(request, str) else json.dumps(request)
        self.worker.stdin.write(line + "\n")
        self.worker.stdin.flush()
        reply = self.worker.stdout.readline()
        return json.loads(reply) if reply else None

    def run(self, call, operands, outputs=("out",), **more):
        self.operands = {o["name"]: o for o in operands}
        request = {
            "type": "run",
            "version": 1,
            "exchange": {"path": self.file.name, "bytes": self.bytes},
            "device": "cpu",
            "threads": 1,
            "seed": 0,
            "call": call,
            "operands": operands,
            "outputs": list(outputs),
            "backward": None,
            "point": {},
        }
        return self.ask({**request, **more})

    def write(self, name, values):
        """Writes a whole storage, in as many requests as the exchange needs."""
        values = np.ascontiguousarray(values, NUMPY[self.operands[name]["dtype"]])
        assert list(values.shape) == self.operands[name]["storage"]
        rows = values.reshape(1, -1) if values.ndim == 0 else values.reshape(values.shape[0], -1)
        step = max(1, self.bytes // max(1, rows[0].nbytes))
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            self.map[: part.nbytes] = part.tobytes()
            reply = self.ask({"type": "write", "tensor": name, "first": first, "count": len(part)})
            assert reply == {"type": "done"}, reply

    def compute(self):
        reply = self.ask({"type": "compute"})
        for output in (reply or {}).get("outputs", []):
            self.outputs[output["name"]] = output
        return reply

    def read(self, name, batches, shape, dtype, rows=None, cols=None):
        """Elements of one request, in the shape that the caller expects of them."""
        request = {"type": "read", "tensor": name, "batches": batches, "rows": rows, "cols": cols}
        reply = self.ask(request)
        assert reply["type"] == "done", reply
        count = int(np.prod(shape))
        assert reply["bytes"] == count * np.dtype(NUMPY[dtype]).itemsize
        return np.frombuffer(self.map[: reply["bytes"]], NUMPY[dtype]).reshape(shape)

    def read_all(self, name):
        """A whole output, in as many requests as the exchange needs."""
        shape, dtype = self.outputs[name]["shape"], self.outputs[name]["dtype"]
        batches, each = (shape[0], shape[1:]) if shape else (1, [])
        step = max(1, self.bytes // (int(np.prod(each)) * np.dtype(NUMPY[dtype]).itemsize))
        parts = []
        for first in range(0, batches, step):
            chosen = list(range(first, min(batches, first + step)))
            parts.append(self.read(name, chosen, [len(chosen), *each], dtype).copy())
        return np.concatenate(parts).reshape(shape)

    def quit(self):
        """Asks the worker to end; its status, what else it wrote to its output, and its standard error."""
        self.worker.stdin.write('{"type": "quit"}\n')
        out, err = self.worker.communicate(timeout=60)
        return self.worker.returncode, out, err
