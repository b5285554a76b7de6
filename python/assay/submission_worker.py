"""The workers that run submissions: a server that has imported PyTorch, and a confined child of it for each submission.

The protocol is `docs/submission-worker.md` (version 1). The server answers `hello`, `fork`, `end` and `quit` on its
standard streams and runs nothing of a submission. A child connects to the socket that `fork` names, confines itself
(`confinement.py`), presents a CUDA device (`cuda_on_cpu.py`) and then talks there: it answers `load`, `make`, `forward`
and `quit`, and while it does it may ask for `build` (sources of an extension) and `call` (a function of one); within a
call it may be asked for an `op`, a function of PyTorch's.

The child judges nothing. What it says about itself (inputs that changed, functions that were replaced) comes out of a
process in which the submission runs and may be forged; what decides a verdict are output bytes, and launches, which
happen in `assay`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import platform
import signal
import socket
import symtable
import sys
import types

from worker_protocol import TORCH_MISSING, Fault, Raised, Stage, describe, dtypes, field, out_of_memory, serve

if TORCH_MISSING is None:
    import builtins
    import random
    import time

    import compiled_host
    import torch
    import torch.utils.cpp_extension
    from confinement import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, confine, libc
    from cuda_on_cpu import present
    from submission_tensors import Codec, Full, Strange, pointer

VERSION = 1
PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
# A line of the conversation; a submission's sources are part of one.
LINE_BYTES = 16 << 20


class Over(BaseException):
    """The judge has seen enough; no handler of a submission's catches it by `except Exception`."""


class Extension(types.ModuleType):
    """What `load_inline` gives back: functions that run in the judge."""

    def __init__(self, name, ident, functions, child):
        super().__init__(name)
        for function in functions:
            setattr(self, function, Function(child, ident, function))


class Function:
    """A function of an extension."""

    def __init__(self, child, ident, name):
        self.child, self.ident, self.__name__ = child, ident, name
        self.__doc__ = "a function of an extension"

    def __call__(self, *args, **kwargs):
        return self.child.call(self.ident, self.__name__, args, kwargs)


def snapshot():
    """What a harness relies on, by name: the functions of PyTorch and of clocks as they are now."""
    out = {}
    for holder in (
        torch,
        torch.Tensor,
        torch.nn.functional,
        torch.nn.Module,
        torch.cuda,
        torch.testing,
        torch.random,
        torch.linalg,
        torch.autograd,
        time,
        random,
        builtins,
        gc,
    ):
        name = getattr(holder, "__name__", str(holder))
        for key, value in vars(holder).items():
            if callable(value):
                out[f"{name}.{key}"] = (holder, key, value)
    return out


class Child:
    """One submission and the conversation about it."""

    def __init__(self, request):
        path = field(request, "socket", (str,))
        exchange = {"type": "fork", **field(request, "exchange", (dict,))}
        # Everything that needs the system comes first; then the doors close.
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.line.connect(path)
        handle = self.line.detach()
        self.requests = os.fdopen(handle, "rb", buffering=1 << 16)
        self.replies = os.fdopen(os.dup(handle), "wb", buffering=0)
        with open(field(exchange, "path", (str,)), "r+b") as f:
            mapped = mmap.mmap(f.fileno(), field(exchange, "bytes", (int,)))
        self.codec = Codec(mapped, dtypes())
        self.private = field(request, "private", (str,))
        self.limits = field(request, "limits", (dict,))
        self.precision = getattr(torch, PRECISIONS[field(request, "precision", (str,))])
        self.module, self.model, self.held = None, None, None
        self.lent = {}
        self.stale = []
        self.device = compiled_host.Device(self)

    def live(self):
        os.chdir(self.private)
        words = os.open("words", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd, source in ((0, nothing), (1, nothing), (2, words)):
            os.dup2(source, fd)
        keep = {0, 1, 2, self.requests.fileno(), self.replies.fileno()}
        for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
            if int(name) not in keep:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(
            HOME=self.private,
            TMPDIR=self.private,
            PATH="/usr/bin:/bin",
            TORCH_EXTENSIONS_DIR=self.private,
            LANG="C.UTF-8",
        )
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        torch.set_grad_enabled(True)
        self.mode = present()
        extension = torch.utils.cpp_extension
        extension.load_inline, extension.load = self.load_inline, self.load_files
        extension.CUDA_HOME = "/usr/local/cuda"
        # Nobody but root may look into this process from now on.
        libc().prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        held, missing = confine(self.private, self.limits)
        self.send({"type": "born", "pid": os.getpid(), "confined": held, "missing": missing})
        self.mode.__enter__()
        self.before = snapshot()
        while True:
            request = self.receive()
            if request["type"] == "quit":
                os._exit(0)
            self.send(self.answer(request))

    # The conversation.

    def send(self, message):
        line = json.dumps(message).encode() + b"\n"
        try:
            while line:
                line = line[self.replies.write(line) :]
        except BrokenPipeError:
            # The judge is gone, or has lost its patience.
            os._exit(0)

    def receive(self):
        line = self.requests.readline(LINE_BYTES)
        if not line.endswith(b"\n"):
            # The judge is gone.
            os._exit(0)
        return json.loads(line)

    def answer(self, request):
        try:
            return getattr(self, "on_" + request["type"])(request)
        except Raised as e:
            return {"type": "raised", "stage": e.stage, "kind": e.kind, "message": str(e)}
        except Over:
            return {"type": "over"}
        except Full as e:
            return {"type": "raised", "stage": "exchange", "kind": "Full", "message": str(e)}

    def guarded(self, stage, work):
        """Runs code of the submission's; whatever it raises is an answer."""
        try:
            return work()
        except (Raised, Over, Full):
            raise
        except BaseException as e:  # `SystemExit` and `KeyboardInterrupt` of a submission are its answers too.
            stage = "allocate" if out_of_memory(e) else stage
            raised = Raised(stage, describe(e))
            raised.kind = type(e).__name__
            raise raised from e

    # What the judge asks.

    def on_load(self, request):
        source, name = field(request, "source", (str,)), field(request, "name", (str,))
        module = types.ModuleType("submission")
        sys.modules["submission"] = module
        self.module = module.__dict__
        # The benchmark runs the problem file and then the submission in one namespace: some count on its names.
        lent = field(request, "problem", (str,), "")
        with contextlib.suppress(Exception):
            exec(compile(lent, "problem.py", "exec"), self.module)
        self.module.update(__name__="submission", __file__=os.path.join(self.private, name))
        self.lent = {k: v for k, v in self.module.items() if k not in assigned(source)}
        self.guarded("load", lambda: exec(compile(source, name, "exec"), self.module))
        made = self.module.get("ModelNew")
        if not isinstance(made, type):
            message = "the file defines no class `ModelNew`"
            return {"type": "raised", "stage": "load", "kind": "NameError", "message": message}
        return {"type": "loaded", "takes": parameters(made), "patched": self.patched()}

    def on_make(self, request):
        storages = self.codec.storages(request)
        init = [self.codec.value(v, storages) for v in field(request, "init", (list,))]
        seed = field(request, "seed", (int,))
        # Names of the problem file that the submission has no own value for follow the extents.
        extents = field(request, "extents", (dict,), {})
        self.module.update({k: extents.get(k, v) for k, v in self.lent.items() if type(v) is int})
        self.model = self.held = None
        self.mode.fill = lambda t: t.numel() > 1 << 20

        def work():
            with torch.no_grad():
                seeds(seed)
                model = self.module["ModelNew"](*init)
                if not callable(getattr(model, "forward", None)):
                    raise TypeError("`ModelNew` has no `forward`")
                if isinstance(model, torch.nn.Module):
                    model = model.to(device="cuda", dtype=self.precision)
                return model

        self.model = self.guarded("make", work)
        self.mode.fill = None
        listed = []
        if isinstance(self.model, torch.nn.Module):
            for name, p in list(self.model.named_parameters())[:4096]:
                with torch._C.DisableTorchFunction():
                    listed.append([name, list(p.shape), finite(p.detach().double().sum().item())])
        return {"type": "made", "parameters": listed, "patched": self.patched()}

    def on_forward(self, request):
        storages = self.codec.storages(request)
        inputs = [self.codec.value(v, storages) for v in field(request, "inputs", (list,))]
        seed, held = field(request, "seed", (int,)), request.get("held", False)
        if held and self.held is not None and same_places(self.held, inputs):
            # The same tensors as last time, with other values in them.
            for mine, theirs in zip(self.held, inputs):
                if isinstance(mine, torch.Tensor):
                    with torch._C.DisableTorchFunction(), torch.no_grad():
                        mine.copy_(theirs)
            inputs = self.held
        self.held = inputs
        with torch._C.DisableTorchFunction(), torch.no_grad():
            before = [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs]
        self.mode.fill = self.leave(request)

        def work():
            with torch.no_grad():
                seeds(seed)
                out = self.model(*inputs) if callable(self.model) else self.model.forward(*inputs)
                torch.cuda.synchronize()
                return out

        output = self.guarded("forward", work)
        self.mode.fill = None
        packer = self.codec.packer()
        reply = {"type": "output", "value": None}
        with torch._C.DisableTorchFunction(), torch.no_grad():
            flat = list(tensors_of(output))
            places = {pointer(x.untyped_storage()) for x in inputs if isinstance(x, torch.Tensor) and x.numel()}
            reply["aliases"] = any(pointer(t.untyped_storage()) in places for t in flat if t.numel())
            reply["modified"] = [
                i
                for i, (x, b) in enumerate(zip(inputs, before))
                if isinstance(x, torch.Tensor) and not torch.equal(bits(x), bits(b))
            ]
            reply["value"] = self.guarded("result", lambda: packer.value(compact(output)))
        reply["storages"] = packer.storages
        reply["patched"] = self.patched()
        return reply

    def leave(self, request):
        """What fresh memory is to hold: the tensors of `stale`, where one of them has as many elements."""
        if request.get("stale") is None:
            return None
        storages = self.codec.storages(request)
        stale = list(tensors_of(self.codec.value(request["stale"], storages)))

        def fill(tensor):
            for t in stale:
                if t.numel() == tensor.numel() and t.dtype == tensor.dtype:
                    tensor.copy_(t.reshape(tensor.shape))
                    return True
            return False

        return fill

    def patched(self):
        """Functions that a harness relies on and that are no longer what they were."""
        # A list of names that are looked up lazily grows by itself; only what was there is compared.
        return [name for name, (holder, key, value) in self.before.items() if vars(holder).get(key) is not value][:16]

    # What the submission asks.

    def load_inline(
        self,
        name,
        cpp_sources=None,
        cuda_sources=None,
        functions=None,
        extra_cflags=None,
        extra_cuda_cflags=None,
        extra_ldflags=None,
        extra_include_paths=None,
        build_directory=None,
        verbose=False,
        with_cuda=None,
        is_python_module=True,
        **_,
    ):
        cpp, cuda = texts(cpp_sources), texts(cuda_sources)
        if isinstance(functions, dict):
            functions = list(functions)
        return self.build(name, cpp, cuda, texts(functions), texts(extra_cuda_cflags), texts(extra_cflags))

    def load_files(self, name, sources, extra_cflags=None, extra_cuda_cflags=None, *_, **__):
        cpp, cuda = [], []
        for path in texts(sources):
            with open(path, encoding="utf-8") as f:
                (cuda if str(path).endswith((".cu", ".cuh")) else cpp).append(f.read())
        return self.build(name, cpp, cuda, [], texts(extra_cuda_cflags), texts(extra_cflags))

    def build(self, name, cpp, cuda, functions, cuda_flags, flags):
        self.send(
            {
                "type": "build",
                "name": str(name),
                "cpp_sources": cpp,
                "cuda_sources": cuda,
                "functions": functions,
                "cuda_flags": cuda_flags,
                "cpp_flags": flags,
            }
        )
        reply = self.await_reply()
        if reply["type"] == "compiled":
            return compiled_host.load(self, self.device, reply)
        return Extension(str(name), reply["module"], reply["functions"], self)

    def call(self, module, function, args, kwargs):
        packer = self.codec.packer()
        try:
            values = [packer.value(a) for a in args]
            named = {k: packer.value(v) for k, v in kwargs.items()}
        except Strange as e:
            raise TypeError(f"{function}(): incompatible function arguments: {e}") from e
        mine, places = packer.kept, packer.storages
        self.send(
            {
                "type": "call",
                "module": module,
                "function": function,
                "args": values,
                "kwargs": named,
                "storages": places,
            }
        )
        reply = self.await_reply()
        # The arguments' storages come first in the list of those that the result may name.
        for index, offset, size in reply.get("changed", []):
            self.codec.overwrite(mine[index], offset, size)
        storages = [*mine, *self.codec.storages(reply)]
        return self.codec.value(reply.get("value"), storages)

    def await_reply(self):
        """The judge's answer to what was asked; in between it may ask for operations."""
        while True:
            message = self.receive()
            kind = message["type"]
            if kind == "op":
                self.send(self.op(message))
            elif kind == "raise":
                error = {"TypeError": TypeError, "ValueError": ValueError, "IndexError": IndexError}
                raise error.get(message.get("kind"), RuntimeError)(message["message"])
            elif kind == "over":
                raise Over
            else:
                return message

    def op(self, message):
        """A function or method of PyTorch's, for the host code of an extension."""
        try:
            storages = self.codec.storages(message)
            args = [self.codec.value(v, storages) for v in message["args"]]
            kwargs = {k: self.codec.value(v, storages) for k, v in message.get("kwargs", {}).items()}
            with torch.no_grad():
                result = operation(message["name"])(*args, **kwargs)
            packer = self.codec.packer()
            value = packer.value(list(result) if isinstance(result, torch.Size) else result)
            return {"type": "op", "value": value, "storages": packer.storages}
        except (Full, Strange, Exception) as e:
            return {"type": "raise", "kind": type(e).__name__, "message": describe(e)}


def operation(name):
    """PyTorch's function of that name: the operator that C++ calls, then what Python has under it."""
    for holder in (torch.ops.aten, torch, torch.nn.functional, torch.Tensor, torch.linalg):
        found = holder
        for part in name.split("."):
            found = getattr(found, part, None)
            if found is None:
                break
        if callable(found):
            return found
    raise AttributeError(f"PyTorch has no function `{name}`")


def texts(value):
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike)):
        return [str(value)]
    return [str(v) for v in value]


def seeds(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def finite(x):
    return x if x == x and abs(x) != float("inf") else str(x)


def bits(t):
    """A tensor to compare bit by bit, so that NaN equals itself."""
    t = t.detach().contiguous()
    return t.view(torch.uint8) if t.dim() and t.numel() else t.reshape(-1).view(torch.uint8)


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_of(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors_of(v)


def compact(value):
    """An output whose tensors are contiguous and no longer than they look; a dict as the list of its values."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        whole = value.is_contiguous() and value.untyped_storage().nbytes() == value.numel() * value.element_size()
        return value if whole else value.contiguous().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(compact(v) for v in value) if type(value) in (list, tuple) else [compact(v) for v in value]
    if isinstance(value, dict):
        return [compact(v) for v in value.values()]
    return value


def same_places(held, inputs):
    pairs = [(a, b) for a, b in zip(held, inputs) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)]
    return len(held) == len(inputs) and all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)


def assigned(source):
    """Names that a file binds at its top level; none where it does not parse."""
    try:
        table = symtable.symtable(source, "<submission>", "exec")
    except (SyntaxError, ValueError):
        return set()
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def parameters(kind):
    """How many init arguments a class takes: [least, most or None]."""
    import inspect

    if kind.__init__ is torch.nn.Module.__init__:
        return [0, 0]
    try:
        listed = list(inspect.signature(kind.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return [0, None]
    positional = [p for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind == p.VAR_POSITIONAL for p in listed):
        return [sum(p.default is p.empty for p in positional), None]
    return [sum(p.default is p.empty for p in positional), len(positional)]


Raised.kind = "RuntimeError"


class Server:
    """The process that children come from. It reads one line at a time and has one thread, so that it may fork."""

    def __init__(self):
        self.ready = False
        self.children = {}

    def answer(self, request):
        kind = request.get("type") if isinstance(request, dict) else None
        if kind == "quit":
            for pid in list(self.children):
                self.kill(pid)
            return None
        if kind not in ("hello", "fork", "end") or (kind != "hello" and not self.ready):
            raise Fault(f"no request of the protocol: {json.dumps(request)}"[:2000])
        return getattr(self, kind)(request)

    def hello(self, request):
        if field(request, "version", (int,)) != VERSION:
            raise Fault(f"this worker speaks version {VERSION}")
        # One thread: a pool of threads does not survive a fork.
        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
        gc.collect()
        gc.freeze()
        self.ready = True
        return {
            "type": "ready",
            "environment": {
                "torch": torch.__version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
            },
        }

    def fork(self, request):
        self.reap()
        with Stage("fork"):
            pid = os.fork()
        if pid == 0:
            status = 70
            try:
                libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                os.setsid()
                Child(request).live()
            except BaseException as e:
                with contextlib.suppress(OSError):
                    os.write(2, f"{type(e).__name__}: {e}\n".encode())
            finally:
                os._exit(status)
        self.children[pid] = None
        return {"type": "forked", "pid": pid}

    def reap(self):
        for pid in [p for p, status in self.children.items() if status is None]:
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                done, status = pid, 0
            if done:
                self.children[pid] = status

    def kill(self, pid):
        self.reap()
        if self.children.get(pid, 0) is None:
            try:
                os.kill(pid, signal.SIGKILL)
                _, self.children[pid] = os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                self.children[pid] = 0

    def end(self, request):
        """Ends a child and says how it ended: `status` is its exit status, or minus the signal; `killed` where it had
        not ended by itself a moment before."""
        pid = field(request, "pid", (int,))
        if pid not in self.children:
            raise Fault(f"no child {pid}")
        for _ in range(request.get("patience", 0)):
            self.reap()
            if self.children[pid] is not None:
                break
            time.sleep(0.005)
        alive = self.children[pid] is None
        self.kill(pid)
        status = self.children.pop(pid)
        return {"type": "ended", "status": os.waitstatus_to_exitcode(status), "killed": alive}


def main():
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Server, requests, replies)
    os._exit(0)


if __name__ == "__main__":
    main()
