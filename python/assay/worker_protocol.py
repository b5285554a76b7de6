"""What every worker of Assay shares: JSON lines on the standard streams, the exchange, and the three ways to refuse.

A worker is a script that `assay` starts with the Python it is given, beside this file: any PyTorch from 2.4 on, Python
from 3.9 on, nothing else. Requests come on standard input, one JSON object a line; each has exactly one reply on
standard output; numbers travel in the exchange, a file that both sides map (`docs/torch-worker.md` and
`docs/sweep-worker.md` have the requests).

A request that the worker cannot serve at all (not of the protocol, no such device, no PyTorch, a call that gives no
tensors) is answered by `{"type": "fault", "message": …}`, which says nothing about what was asked. An exception of
PyTorch is `{"type": "raised", "stage": …, "message": …}`; memory that runs out is the stage `allocate`, whichever
request it happens in.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import threading
import time

MESSAGE_BYTES = 2000

try:
    import torch

    TORCH_MISSING = None
except Exception as e:  # A broken installation raises more than ImportError.
    TORCH_MISSING = f"cannot import torch with {sys.executable}: {type(e).__name__}: {e}"


class Fault(Exception):
    """The request cannot be served, for a reason that is not the operation's."""


class Raised(Exception):
    """The operation, a transfer or an allocation raised; `stage` says where."""

    def __init__(self, stage, message):
        super().__init__(message)
        self.stage = stage


def first_paragraph(text):
    """What a message says before its first blank line; PyTorch appends tables of kernels and stacks after it."""
    return text.strip().split("\n\n")[0][:MESSAGE_BYTES]


def describe(e):
    text = first_paragraph(str(e))
    return f"{type(e).__name__}: {text}" if text else type(e).__name__


def out_of_memory(e):
    """Whether memory ran out. A size that a backend refuses, however large, is not meant."""
    classes = [MemoryError]
    for holder in (torch, torch.cuda):
        kind = getattr(holder, "OutOfMemoryError", None)
        if isinstance(kind, type):
            classes.append(kind)
    text = str(e)
    return (
        isinstance(e, tuple(classes))
        or "DefaultCPUAllocator: can't allocate memory" in text
        or "DefaultCPUAllocator: not enough memory" in text
        or "MPS backend out of memory" in text
    )


class Stage:
    """Turns an exception of its block into `Raised` with this stage."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, e, trace):
        if e is None or isinstance(e, (Fault, Raised)) or not isinstance(e, Exception):
            return False
        raise Raised("allocate" if out_of_memory(e) else self.name, describe(e)) from e


def field(request, name, kinds, default=None):
    """A field of a request, checked for its type. A default makes it optional."""
    value = request.get(name, default)
    if value is None and default is None and type(None) not in kinds:
        raise Fault(f"the request `{request.get('type')}` lacks `{name}`")
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise Fault(f"`{name}` of the request `{request.get('type')}` has a wrong type: {value!r}"[:MESSAGE_BYTES])
    return value


def dtypes():
    """The protocol's names of dtypes and PyTorch's own."""
    return {
        "bool": torch.bool,
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "f64": torch.float64,
        "i8": torch.int8,
        "u8": torch.uint8,
        "i16": torch.int16,
        "i32": torch.int32,
        "i64": torch.int64,
    }


class Server:
    """What the workers' own classes begin with: dtypes by name, the exchange, and the order of requests.

    `requests` names the methods that answer, the first of which comes first and sets `ready`.
    """

    requests = ()

    def __init__(self):
        self.dtypes = dtypes()
        self.names = {dtype: name for name, dtype in self.dtypes.items()}
        self.ready = False
        self.exchange = None
        self.exchange_bytes = 0

    def open_exchange(self, exchange):
        exchange = {"type": "run", **exchange}
        path, self.exchange_bytes = field(exchange, "path", (str,)), field(exchange, "bytes", (int,))
        try:
            with open(path, "r+b") as f:
                self.exchange = mmap.mmap(f.fileno(), self.exchange_bytes)
        except (OSError, ValueError) as e:
            raise Fault(f"cannot map the exchange `{path}` of {self.exchange_bytes} bytes: {e}") from e

    def check_version(self, request, version):
        if self.ready:
            raise Fault(f"a second `{self.requests[0]}`; a worker serves one")
        asked = field(request, "version", (int,))
        if asked != version:
            raise Fault(f"the protocol has version {asked}, this worker speaks {version}")

    def dtype_name(self, tensor):
        return self.names.get(tensor.dtype, str(tensor.dtype).replace("torch.", ""))

    def window(self, dtype, shape, offset):
        """The exchange's bytes from `offset` on as a tensor of this shape, without a copy."""
        count = 1
        for n in shape:
            count *= n
        size = torch.empty((), dtype=dtype).element_size()
        if offset + count * size > self.exchange_bytes:
            raise Fault(f"{count * size} bytes for an exchange of {self.exchange_bytes}")
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(self.exchange, dtype=dtype, count=count, offset=offset).reshape(shape)

    def answer(self, request):
        """The reply to a request, None for `quit`. Raises `Fault` and `Raised`."""
        kind = request.get("type") if isinstance(request, dict) else None
        if kind == "quit":
            return None
        if kind not in self.requests:
            raise Fault(f"no request of the protocol: {json.dumps(request)}"[:MESSAGE_BYTES])
        if kind != self.requests[0] and not self.ready:
            raise Fault(f"`{kind}` before a `{self.requests[0]}` that succeeded")
        return getattr(self, kind)(request)


def serve(make, requests, replies):
    """Answers requests by the server that `make` gives, until `quit` or the end of input."""
    server = None
    for line in requests:
        if not line.strip():
            continue
        try:
            try:
                request = json.loads(line)
            except ValueError as e:
                raise Fault(f"a line is not JSON: {e}") from e
            if TORCH_MISSING is not None:
                raise Fault(TORCH_MISSING)
            server = server or make()
            reply = server.answer(request)
            if reply is None:
                return
        except Raised as e:
            reply = {"type": "raised", "stage": e.stage, "message": str(e)}
        except Fault as e:
            reply = {"type": "fault", "message": str(e)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def end_with(parent):
    """Ends this process once `parent` is not its parent any more: a killed `assay` ends nobody, and a worker that
    computes does not notice that its input has ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main(make):
    """A worker's whole life."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    # Both ends of the protocol are moved aside: what the operation prints goes to standard error, and what it reads is
    # nothing.
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # An interrupt of the terminal reaches the sweep and its workers alike. The sweep ends the worker then; what the
    # worker did by itself would look like an outcome of the operation.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(make, requests, replies)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end: it would take the device down step by step, and a backend that fails there
    # would turn a run that is over into a crash.
    os._exit(0)
