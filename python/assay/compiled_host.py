"""The device of extensions whose host part a C++ compiler has compiled, in the process that loads them.

`crates/extension/cpp/assay_host.h` calls the object `device` of the module `assay_device`, which this file makes: for
launches, which go over the child's line to Assay with the bytes of the memory that their pointers lie in; for device
memory; for copies. What memory there is, is known from what a function is given, from what PyTorch's operations make
while it runs (a dispatch mode sees them all), and from `cudaMalloc`.

What this misses: host code that reads or writes device memory by itself is not seen, since all of it is the process's;
a pointer that a record hides is found by its value.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import sys
import types

import torch
from submission_tensors import ALIGNMENT, Full, pointer
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

# Operations that give memory without values, and those that only look at a tensor otherwise or fill it.
UNSET = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
PLAIN = UNSET | {
    "_to_copy", "alias", "as_strided", "clone", "contiguous", "copy_", "detach", "expand", "fill_", "full",
    "full_like", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "permute", "select", "slice", "split",
    "squeeze", "t", "transpose", "unsqueeze", "view", "zero_", "zeros", "zeros_like", "_unsafe_view", "_reshape_alias",
}  # fmt: skip
# Names of operations that one call may report.
MOST_NAMES = 256
CUDA_ERROR_INVALID_VALUE = 1


class Memory:
    """Some bytes of device memory; `fresh` while nothing but noise was written to them."""

    def __init__(self, ident, address, size, fresh, storage=None, kept=None):
        self.ident, self.address, self.size, self.fresh = ident, address, size, fresh
        self.weak = None if storage is None else StorageWeakRef(storage)
        # What `cudaMalloc` gave lives until `cudaFree`.
        self.kept = kept

    def alive(self):
        return self.weak is None or not self.weak.expired()


class Watch(TorchDispatchMode):
    """Sees PyTorch's operations while a compiled function runs: what memory they make and write to. Asked for a CUDA
    device they use the CPU, which stands for it."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    @classmethod
    def _should_skip_dynamo(cls):
        # Else PyTorch imports its own compiler on the first operation: seconds, and it minds a device presented.
        return False

    def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if getattr(kwargs.get("device"), "type", None) == "cuda":
            kwargs["device"] = torch.device("cpu")
        if self.device.quiet:
            return func(*args, **kwargs)
        name = func._schema.name.split("::")[-1]
        with torch._C.DisableTorchFunction():
            out = func(*args, **kwargs)
            for given, value in zip(func._schema.arguments, args):
                if given.alias_info is not None and given.alias_info.is_write and isinstance(value, torch.Tensor):
                    self.device.note(value, written=True)
            for value in out if isinstance(out, (list, tuple)) else (out,):
                if isinstance(value, torch.Tensor):
                    self.device.note(value, fresh=name in UNSET)
        if name not in PLAIN and len(self.device.library) < MOST_NAMES:
            self.device.library.append(name)
        return out


class Device:
    """What the C++ side calls `device`."""

    def __init__(self, child):
        self.child = child
        self.all, self.addresses, self.count = {}, [], 0
        self.module, self.depth, self.library = 0, 0, []
        self.large_shared, self.kernels = [], {}
        # While this file itself asks PyTorch for something.
        self.quiet = False

    # Memory.

    def add(self, address, size, fresh, storage=None, kept=None):
        # What lay there before is gone, or the address would not have been given again.
        for known in self.within(address, size):
            self.drop(known.address)
        self.count += 1
        memory = Memory(self.count, address, size, fresh, storage, kept)
        self.all[address] = memory
        bisect.insort(self.addresses, address)
        return memory

    def drop(self, address):
        if self.all.pop(address, None) is not None:
            self.addresses.pop(bisect.bisect_left(self.addresses, address))

    def within(self, address, size):
        """Memory that begins in a range, or in which the range begins."""
        first = max(bisect.bisect_right(self.addresses, address) - 1, 0)
        last = bisect.bisect_left(self.addresses, address + max(size, 1))
        found = [self.all[a] for a in self.addresses[first:last]]
        return [m for m in found if m.address < address + max(size, 1) and address < m.address + m.size]

    def note(self, tensor, fresh=False, written=False):
        """A tensor is there: its storage is memory of the device."""
        if tensor.layout is not torch.strided or tensor.is_meta:
            return
        storage = tensor.untyped_storage()
        address, size = pointer(storage), storage.nbytes()
        if not address or not size:
            return
        known = self.all.get(address)
        if known is not None and known.size == size and known.alive():
            known.fresh = known.fresh and not written
        elif any(m.kept is not None for m in self.within(address, size)):
            # A tensor over memory of `cudaMalloc`'s.
            return
        else:
            if fresh:
                self.child.mode.fresh(tensor)
            self.add(address, size, fresh and not written, storage=storage)

    def find(self, address):
        """The memory that an address lies in, and the distance from its beginning; one past the end belongs to it."""
        at = bisect.bisect_right(self.addresses, address) - 1
        if at < 0:
            return None
        memory = self.all[self.addresses[at]]
        if not memory.alive():
            self.drop(memory.address)
            return None
        return (memory, address - memory.address) if address <= memory.address + memory.size else None

    def allocate(self, size, line):
        if size == 0:
            return 0
        # Never less than asked for; the length that is known is the length that was asked for.
        self.quiet = True
        try:
            with torch._C.DisableTorchFunction():
                tensor = torch.empty(-(-size // 4), dtype=torch.float32)
                self.child.mode.fresh(tensor)
        finally:
            self.quiet = False
        address = pointer(tensor.untyped_storage())
        self.add(address, size, True, kept=tensor)
        return address

    def release(self, address):
        if address == 0:
            return 0
        known = self.all.get(address)
        if known is None or known.kept is None:
            return CUDA_ERROR_INVALID_VALUE
        self.drop(address)
        return 0

    def fits(self, address, size):
        found = self.find(address)
        return found is None or found[1] + size <= found[0].size

    def copy(self, to, source, size):
        if not self.fits(to, size) or not self.fits(source, size):
            return CUDA_ERROR_INVALID_VALUE
        if size:
            ctypes.memmove(to, source, size)
            self.touched(to)
        return 0

    def set(self, to, value, size):
        if not self.fits(to, size):
            return CUDA_ERROR_INVALID_VALUE
        if size:
            ctypes.memset(to, value, size)
            self.touched(to)
        return 0

    def touched(self, address):
        found = self.find(address)
        if found is not None:
            found[0].fresh = False

    def symbol(self, name, data, offset, line):
        self.ask({"type": "symbol", "name": name, "bytes": data.hex(), "offset": offset, "line": line})

    def allow_shared(self, arguments):
        """`cudaFuncSetAttribute(kernel<float>, attribute, bytes)`: the text of its arguments."""
        if "MaxDynamicSharedMemorySize" in arguments:
            first = arguments.rsplit("cudaFunc", 1)[0].rstrip(" ,(")
            self.large_shared.append(first)

    def may_be_large(self, kernel):
        base = kernel.split("<")[0].rsplit("::")[-1].strip()
        words = [set(w.replace("<", " ").replace(":", " ").replace(")", " ").replace("&", " ").split())
                 for w in self.large_shared]  # fmt: skip
        known = self.kernels.get(self.module, set())
        # A text that names no kernel is a variable, whose value is not known here.
        return any(base in w or not (w & known) for w in words)

    # Launches.

    def launch(self, kernel, grid, block, shared, line, parameters):
        sent, at, places, memory, indices = [], 0, [], [], {}

        def place(found):
            nonlocal at
            entry = found[0]
            if entry.ident not in indices:
                at = -(-at // ALIGNMENT) * ALIGNMENT
                if at + entry.size > self.child.codec.bytes:
                    raise Full(f"{at + entry.size} bytes for an exchange of {self.child.codec.bytes}")
                ctypes.memmove(self.child.codec.base + at, entry.address, entry.size)
                indices[entry.ident] = len(places)
                places.append([at, entry.size])
                memory.append(entry)
                at += entry.size
            return indices[entry.ident], found[1]

        for name, kind, data, dtype in parameters:
            if kind == "pointer":
                address = int.from_bytes(data, "little")
                if address == 0:
                    sent.append({"bytes": data.hex()})
                    continue
                found = self.find(address)
                if found is None:
                    sent.append({"nowhere": name})
                    continue
                index, offset = place(found)
                sent.append({"pointer": index, "offset": offset, "name": name, "dtype": dtype})
            elif kind == "record" and len(data) >= 8:
                pointers = []
                for i in range(0, len(data) - 7, 8):
                    word = int.from_bytes(data[i : i + 8], "little")
                    found = self.find(word) if word else None
                    if found is not None:
                        pointers.append([i, *place(found)])
                sent.append({"bytes": data.hex(), "pointers": pointers, "name": name})
            else:
                sent.append({"bytes": data.hex()})
        reply = self.ask(
            {
                "type": "launch",
                "kernel": kernel,
                "grid": list(grid),
                "block": list(block),
                "shared": shared,
                "large_shared": bool(self.large_shared) and self.may_be_large(kernel),
                "line": line,
                "parameters": sent,
                "storages": places,
                "memory": [[m.ident, m.fresh] for m in memory],
            }
        )
        for index, offset, size in reply.get("changed", []):
            entry = memory[index]
            if size != entry.size or offset + size > self.child.codec.bytes:
                raise ValueError(f"{size} bytes for memory of {entry.size}")
            ctypes.memmove(entry.address, self.child.codec.base + offset, size)

    def unsupported(self, what):
        self.ask({"type": "lacking", "construct": what})

    def ask(self, message):
        self.child.send(message)
        return self.child.await_reply()

    # Calls.

    def call(self, module, function, args, kwargs):
        """Calls a function of a module that a compiler made."""
        for value in tensors_of([args, kwargs]):
            with torch._C.DisableTorchFunction():
                self.note(value, written=True)
        if self.depth:
            return function(*args, **kwargs)
        outer, self.module, self.depth, self.library = self.module, module, 1, []
        self.ask({"type": "began", "module": module})
        result = None
        try:
            with Watch(self):
                result = function(*args, **kwargs)
            return result
        finally:
            self.module, self.depth = outer, 0
            given = []
            for value in tensors_of(result):
                with torch._C.DisableTorchFunction():
                    found = self.find(pointer(value.untyped_storage())) if value.layout is torch.strided else None
                if found is not None:
                    given.append(found[0].ident)
            self.ask({"type": "done", "results": given[:4096], "library": self.library})


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_of(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors_of(v)


def wrapped(device, ident, holder):
    """The functions of a module or class that a compiler made, each called as a call of the device's."""

    def wrap(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            return device.call(ident, function, args, kwargs)

        return called

    for name, value in list(vars(holder).items()):
        if isinstance(value, type) and not hasattr(value, "_assay_wrapped"):
            wrapped(device, ident, value)
        elif callable(value) and not isinstance(value, type) and (not name.startswith("__") or name in CALLED):
            setattr(holder, name, wrap(value))


CALLED = {"__init__", "__call__", "__getitem__", "__len__"}


def load(child, device, reply):
    """The module that was built, out of the private folder."""
    path, ident = reply["path"], reply["module"]
    sys.modules["assay_device"] = holder = types.ModuleType("assay_device")
    holder.device = device
    device.kernels = {**device.kernels, ident: set(reply["kernels"])}
    loader = importlib.machinery.ExtensionFileLoader("assay_extension", path)
    spec = importlib.util.spec_from_file_location("assay_extension", path, loader=loader)
    with torch._C.DisableTorchFunction():
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    wrapped(device, ident, module)
    os.unlink(path)
    return module
