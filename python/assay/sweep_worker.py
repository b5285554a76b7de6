"""The PyTorch worker of a boundary sweep: one process, one device, one operation at one size.

The protocol is `docs/sweep-worker.md` (version 1): requests on standard input, one JSON object a line; exactly one
reply each on standard output; numbers in the exchange, a file that both sides map. The worker owns the device. It knows
no operation by name, makes no values and judges nothing.

This file needs PyTorch and the standard library alone, because `assay` runs it as a script with the Python it is given:
any PyTorch from 2.4 on, Python from 3.9 on.

What keeps the measurement clean (the boundary paper, section 3, "Isolation" and "CUDA control"):

- TF32 is off and float32 products have the highest precision; no autotuning; the generator has the run's seed. Global
  deterministic algorithms stay off, because they choose other kernels than the ones a user runs.
- Values go to the device in chunks, straight into the storage of the operand, never by the transfer of a whole large
  tensor, which has failures of its own at these sizes (PyTorch issue 96716).
- Values come back by copies of whole batches. No index of a large tensor is computed on the device, since indexing is
  itself among the operations that fail (issue 188756); rows and columns are picked on the host.
- The device is synchronised before every reply, so that an asynchronous error belongs to the request that caused it.
- Operators are recorded by their names through a dispatch mode that touches nothing else. PyTorch itself can tell that
  a mode is active, and a few composite operations and gradient formulas then avoid in-place variants; the operators on
  the list are in any case those that ran.

A request that the worker cannot serve at all (not of the protocol, no such device, no PyTorch, a call that gives no
tensors) is answered by `{"type": "fault", "message": …}`, which says nothing about the operation. Memory that runs out
is the stage `allocate`, whichever request it happens in.
"""

from __future__ import annotations

import ast
import builtins
import json
import mmap
import os
import platform
import signal
import sys
import time

VERSION = 1
MESSAGE_BYTES = 2000
# The largest part of a tensor that is on the host at one time beside the exchange, where a read picks from batches.
STAGING_BYTES = 64 << 20

try:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    TORCH_MISSING = None
except Exception as e:  # A broken installation raises more than ImportError.
    TORCH_MISSING = f"cannot import torch with {sys.executable}: {type(e).__name__}: {e}"
    TorchDispatchMode = object  # type: ignore[assignment,misc]


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


class Operators(TorchDispatchMode):
    """The operators that were dispatched with a tensor on `device`, by name, in order, without repeats."""

    def __init__(self, device):
        super().__init__()
        self.device = device
        self.names = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(getattr(func, "_schema", None), "name", None) or str(func)
        if name in self.names or self.there(args) or self.there(kwargs.values()):
            self.names[name] = None
            return func(*args, **kwargs)
        out = func(*args, **kwargs)
        # A factory or a transfer to the device: only its result lies there.
        if self.there((out,)):
            self.names[name] = None
        return out

    @classmethod
    def _should_skip_dynamo(cls):
        # Otherwise the first operator imports PyTorch's compiler, for a second, inside the time that is measured.
        return False

    def there(self, values):
        for value in values:
            if isinstance(value, torch.Tensor):
                if value.device.type == self.device.type:
                    return True
            elif isinstance(value, (list, tuple)) and self.there(value):
                return True
        return False


def field(request, name, kinds, default=None):
    """A field of a request, checked for its type. A default makes it optional."""
    value = request.get(name, default)
    if value is None and default is None and type(None) not in kinds:
        raise Fault(f"the request `{request.get('type')}` lacks `{name}`")
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise Fault(f"`{name}` of the request `{request.get('type')}` has a wrong type: {value!r}"[:MESSAGE_BYTES])
    return value


def counts(request, name):
    """A list of non-negative integers, or None."""
    value = field(request, name, (list, type(None)))
    if value is not None and not all(type(i) is int and i >= 0 for i in value):
        raise Fault(f"`{name}` is not a list of indices")
    return value


def free_names(tree):
    """The names that an expression takes from outside."""
    nodes = list(ast.walk(tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return {n.id for n in nodes if isinstance(n, ast.Name)} - bound


def device_name(device):
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "meta":
        return "meta"
    if sys.platform == "darwin":
        import subprocess

        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def device_bytes(device):
    """Memory of the device in bytes, None where it cannot be told. With unified memory: what the backend may use."""
    try:
        if device.type == "cuda":
            return torch.cuda.get_device_properties(device).total_memory
        if device.type == "mps":
            return torch.mps.recommended_max_memory()
        if device.type == "cpu":
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError, RuntimeError):
        pass
    return None


class Worker:
    """One run: its operands on the device, its outputs, and the exchange."""

    def __init__(self):
        self.dtypes = {
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
        self.names = {dtype: name for name, dtype in self.dtypes.items()}
        self.ready = False
        self.exchange = None
        self.storages = {}
        self.views = {}
        self.outputs = {}

    # What the requests do. Each gives its reply.

    def run(self, request):
        if self.ready:
            raise Fault("a second `run`; a worker serves one")
        version = field(request, "version", (int,))
        if version != VERSION:
            raise Fault(f"the protocol has version {version}, this worker speaks {VERSION}")
        self.open_exchange(field(request, "exchange", (dict,)))
        self.settings(field(request, "threads", (int,), 1), field(request, "seed", (int,), 0))
        self.open_device(field(request, "device", (str,)))
        text = field(request, "call", (str,))
        try:
            tree = ast.parse(text, "<call>", "eval")
            self.call = compile(tree, "<call>", "eval")
        except (SyntaxError, ValueError) as e:
            raise Fault(f"the call `{text}` is not an expression: {e}") from e
        backward = field(request, "backward", (dict, type(None)))
        self.upstream = None if backward is None else field({"type": "backward", **backward}, "upstream", (str,))
        operands = field(request, "operands", (list,))
        self.storages, self.views = {}, {}
        self.output_names = field(request, "outputs", (list,))
        for operand in operands:
            self.allocate(operand)
        if self.upstream is not None and self.upstream not in self.views:
            raise Fault(f"the upstream gradient `{self.upstream}` is no operand")
        known = set(self.views) - {self.upstream} | {"torch", "device"} | set(dir(builtins))
        unknown = sorted(free_names(tree) - known)
        if unknown:
            raise Fault(f"the call `{text}` uses {unknown}, which are no operands")
        names = self.output_names + self.gradient_names()
        if (
            len(set(names)) != len(names)
            or not set(names).isdisjoint(self.views)
            or not all(isinstance(n, str) for n in names)
        ):
            raise Fault(f"the outputs {names} are not distinct names beside the operands")
        self.synchronize("allocate")
        self.ready = True
        return {"type": "ready", "generates": False, "environment": self.environment()}

    def write(self, request):
        name, first, count = (
            field(request, n, k) for n, k in (("tensor", (str,)), ("first", (int,)), ("count", (int,)))
        )
        storage = self.storages.get(name)
        if storage is None:
            raise Fault(f"`{name}` is no operand")
        batches = storage.shape[0] if storage.dim() else 1
        if first < 0 or count < 0 or first + count > batches:
            raise Fault(f"batches {first} to {first + count} of `{name}`, which stores {batches}")
        part = storage[first : first + count] if storage.dim() else storage
        if count == 0:
            return {"type": "done"}
        source = self.window(part.dtype, list(part.shape), 0)
        with Stage("write"), torch.no_grad():
            part.copy_(source)
        self.synchronize("write")
        return {"type": "done"}

    def compute(self, request):
        self.outputs = {}
        arguments = {name: view for name, view in self.views.items() if name != self.upstream}
        if self.upstream is not None:
            # A leaf with the view's own strides: the gradient then belongs to the operand as it is passed.
            arguments = {
                name: view.detach().requires_grad_() if view.is_floating_point() else view
                for name, view in arguments.items()
            }
        scope = {"torch": torch, "device": self.device, **arguments}
        operators = Operators(self.device)
        self.synchronize("forward")
        started = time.perf_counter()
        with operators:
            with Stage("forward"):
                result = eval(self.call, scope)
            self.synchronize("forward")
            outputs = self.named(result)
            if self.upstream is not None:
                wanted = [a for a in arguments.values() if a.requires_grad]
                with Stage("backward"):
                    grads = torch.autograd.grad(next(iter(outputs.values())), wanted, self.views[self.upstream])
                self.synchronize("backward")
                outputs.update(zip(self.gradient_names(), grads))
        seconds = time.perf_counter() - started
        self.outputs = {name: tensor.detach() for name, tensor in outputs.items()}
        return {
            "type": "computed",
            "outputs": [
                {"name": name, "dtype": self.dtype_name(t), "shape": list(t.shape)} for name, t in self.outputs.items()
            ],
            "operators": list(operators.names),
            "seconds": seconds,
        }

    def read(self, request):
        name = field(request, "tensor", (str,))
        batches, rows, cols = (counts(request, n) for n in ("batches", "rows", "cols"))
        tensor = self.outputs.get(name)
        if tensor is None:
            tensor = self.views.get(name)
        if tensor is None:
            raise Fault(f"`{name}` is neither an output that was computed nor an operand")
        if batches is None:
            raise Fault("the request `read` lacks `batches`")
        if (rows is None) != (cols is None):
            raise Fault("`rows` and `cols` come together")
        if rows is not None and tensor.dim() != 3:
            raise Fault(f"`rows` and `cols` of `{name}`, which has {tensor.dim()} dims instead of three")
        if tensor.dim() == 0:
            tensor = tensor.reshape(1)
        if any(b >= tensor.shape[0] for b in batches):
            raise Fault(f"batch {max(batches)} of `{name}`, which has {tensor.shape[0]}")
        if rows is not None and (any(r >= tensor.shape[1] for r in rows) or any(c >= tensor.shape[2] for c in cols)):
            raise Fault(f"a row or column outside `{name}`, of shape {list(tensor.shape)}")
        if tensor.dtype not in self.names:
            raise Fault(f"`{name}` has the dtype {tensor.dtype}, which the exchange does not carry")
        each = list(tensor.shape[1:]) if rows is None else [len(rows), len(cols)]
        total = self.window(tensor.dtype, [len(batches), *each], 0)
        # Runs of consecutive batches travel together; where elements are picked, no more at a time than is staged.
        staged = max(1, tensor[0].numel() * tensor.element_size() if len(tensor) else 1)
        longest = len(batches) if rows is None or tensor.device.type == "cpu" else max(1, STAGING_BYTES // staged)
        at = 0
        while at < len(batches):
            n = 1
            while n < longest and at + n < len(batches) and batches[at + n] == batches[at] + n:
                n += 1
            with Stage("read"), torch.no_grad():
                part = tensor[batches[at] : batches[at] + n]
                if rows is not None:
                    rows_at, cols_at = (torch.tensor(i, dtype=torch.int64) for i in (rows, cols))
                    part = fetch(part)[:, rows_at[:, None], cols_at]
                elif not part.is_contiguous():
                    part = fetch(part)
                total[at : at + n].copy_(part)
            at += n
        return {"type": "done", "bytes": total.numel() * total.element_size()}

    # The parts of `run`.

    def open_exchange(self, exchange):
        exchange = {"type": "run", **exchange}
        path, self.exchange_bytes = field(exchange, "path", (str,)), field(exchange, "bytes", (int,))
        try:
            with open(path, "r+b") as f:
                self.exchange = mmap.mmap(f.fileno(), self.exchange_bytes)
        except (OSError, ValueError) as e:
            raise Fault(f"cannot map the exchange `{path}` of {self.exchange_bytes} bytes: {e}") from e

    def settings(self, threads, seed):
        torch.set_num_threads(max(1, threads))
        torch.manual_seed(seed)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        torch.set_float32_matmul_precision("highest")

    def open_device(self, name):
        try:
            self.device = torch.device(name)
            # A device that is not there would otherwise look like an allocation that fails.
            torch.empty(1, device=self.device)
        except Exception as e:
            if not out_of_memory(e):
                raise Fault(f"the device `{name}` cannot be used: {describe(e)}") from e
            raise Raised("allocate", describe(e)) from e
        self.module = getattr(torch, self.device.type, None)

    def allocate(self, operand):
        if not isinstance(operand, dict):
            raise Fault(f"an operand is not an object: {operand!r}"[:MESSAGE_BYTES])
        operand = {"type": "run", **operand}
        name, shape = field(operand, "name", (str,)), field(operand, "storage", (list,))
        skip, transpose = field(operand, "skip", (int,), 0), field(operand, "transpose", (bool,), False)
        place, dtype = field(operand, "place", (str,), "device"), field(operand, "dtype", (str,))
        if name in self.views or name in ("torch", "device") or not name.isidentifier():
            raise Fault(f"`{name}` cannot name an operand")
        if dtype not in self.dtypes or place not in ("device", "cpu"):
            raise Fault(f"the operand `{name}` has the dtype `{dtype}` and the place `{place}`")
        if not all(type(n) is int and n >= 0 for n in shape) or skip < 0 or (skip and (not shape or skip > shape[0])):
            raise Fault(f"the operand `{name}` has the storage {shape} and skips {skip}")
        if transpose and len(shape) != 3:
            raise Fault(f"the operand `{name}` is transposed and has {len(shape)} dims instead of three")
        with Stage("allocate"):
            device = self.device if place == "device" else torch.device("cpu")
            storage = torch.empty(shape, dtype=self.dtypes[dtype], device=device)
            view = storage[skip:] if skip else storage
            view = view.transpose(1, 2) if transpose else view
        self.storages[name], self.views[name] = storage, view

    def environment(self):
        found = {
            "torch": torch.__version__,
            "torch_git": torch.version.git_version,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "device_name": device_name(self.device),
            "device_bytes": device_bytes(self.device),
            "threads": torch.get_num_threads(),
            "cuda": torch.version.cuda,
            "macos": platform.mac_ver()[0] or None,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "tf32": bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32),
        }
        return {key: value for key, value in found.items() if value is not None}

    # What several requests need.

    def gradient_names(self):
        if self.upstream is None:
            return []
        return [f"grad_{n}" for n, v in self.views.items() if n != self.upstream and v.is_floating_point()]

    def named(self, result):
        """The call's result as named tensors; a tuple fills the outputs in order."""
        parts = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(parts) != len(self.output_names) or not all(isinstance(p, torch.Tensor) for p in parts):
            kinds = [type(p).__name__ for p in parts]
            raise Fault(f"the call gives {kinds} where the tensors {self.output_names} are expected")
        return dict(zip(self.output_names, parts))

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

    def synchronize(self, stage):
        wait = getattr(self.module, "synchronize", None)
        if wait is not None and self.device.type not in ("cpu", "meta"):
            with Stage(stage):
                wait()


def fetch(part):
    """The tensor on the host, in its own logical order.

    A permuted tensor travels in the order in which it is stored, so that the device copies bytes and computes no index,
    and is read in its logical order only here.
    """
    if part.device.type == "cpu":
        return part
    order = sorted(range(part.dim()), key=lambda d: (-part.stride(d), d))
    stored = part.permute(order)
    if not stored.is_contiguous():
        return part.cpu()
    back = [order.index(d) for d in range(part.dim())]
    return stored.cpu().permute(back)


def answer(worker, request):
    """The reply to a request, None for `quit`. Raises `Fault` and `Raised`."""
    kind = request.get("type") if isinstance(request, dict) else None
    if kind == "quit":
        return None
    if kind not in ("run", "write", "compute", "read"):
        raise Fault(f"no request of the protocol: {json.dumps(request)}"[:MESSAGE_BYTES])
    if kind != "run" and not worker.ready:
        raise Fault(f"`{kind}` before a `run` that succeeded")
    return getattr(worker, kind)(request)


def serve(requests, replies):
    """Answers requests until `quit` or the end of input."""
    worker = None
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
            worker = worker or Worker()
            reply = answer(worker, request)
            if reply is None:
                return
        except Raised as e:
            reply = {"type": "raised", "stage": e.stage, "message": str(e)}
        except Fault as e:
            reply = {"type": "fault", "message": str(e)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main():
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
    serve(requests, replies)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end: it would take the device down step by step, and a backend that fails there
    # would turn a run that is over into a crash.
    os._exit(0)


if __name__ == "__main__":
    main()
