"""The PyTorch worker of a boundary sweep: one process, one device, one operation at one size.

The protocol is `docs/sweep-worker.md` (version 1): requests on standard input, one JSON object a line; exactly one
reply each on standard output; numbers in the exchange, a file that both sides map. The worker owns the device. It knows
no operation by name, makes no values and judges nothing.

This file needs `worker_protocol.py` beside it, PyTorch and the standard library alone, because `assay` runs it as a
script with the Python it is given: any PyTorch from 2.4 on, Python from 3.9 on.

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
"""

from __future__ import annotations

import ast
import builtins
import os
import platform
import sys
import time

from worker_protocol import (
    MESSAGE_BYTES,
    TORCH_MISSING,
    Fault,
    Raised,
    Server,
    Stage,
    describe,
    field,
    main,
    out_of_memory,
)

if TORCH_MISSING is None:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
else:
    TorchDispatchMode = object  # type: ignore[assignment,misc]

VERSION = 1
# The largest part of a tensor that is on the host at one time beside the exchange, where a read picks from batches.
STAGING_BYTES = 64 << 20


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


class Worker(Server):
    """One run: its operands on the device, its outputs, and the exchange."""

    requests = ("run", "write", "compute", "read")

    def __init__(self):
        super().__init__()
        self.storages = {}
        self.views = {}
        self.outputs = {}

    # What the requests do. Each gives its reply.

    def run(self, request):
        self.check_version(request, VERSION)
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


if __name__ == "__main__":
    main(Worker)
