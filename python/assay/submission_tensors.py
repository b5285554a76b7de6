"""Values of a submission's world in the messages of `docs/submission-worker.md`: tensors as views of storages that lie
in the exchange, everything else as it is.

A message carries `storages`, a list of `[offset, bytes]` in the exchange; a tensor names one of them with its dtype,
sizes, strides and first element, so that two views of one memory stay that. Whoever receives a message copies what it
names before the next message is written: every message begins at the exchange's first byte.
"""

from __future__ import annotations

import ctypes
import math

import torch

ALIGNMENT = 64


class Full(Exception):
    """The tensors of a message do not fit the exchange."""


class Strange(Exception):
    """A value that a message cannot carry."""


def pointer(storage):
    with torch._C.DisableTorchFunction():
        return storage.data_ptr()


class Packer:
    """Writes the values of one message."""

    def __init__(self, codec):
        self.codec, self.at = codec, 0
        self.storages, self.known, self.kept = [], {}, []

    def storage(self, tensor):
        with torch._C.DisableTorchFunction():
            whole = tensor.untyped_storage()
            key, size = (whole.data_ptr(), whole.nbytes()), whole.nbytes()
            if key in self.known and size:
                return self.known[key]
            self.at = -(-self.at // ALIGNMENT) * ALIGNMENT
            if self.at + size > self.codec.bytes:
                raise Full(f"{self.at + size} bytes for an exchange of {self.codec.bytes}")
            if size:
                ctypes.memmove(self.codec.base + self.at, whole.data_ptr(), size)
            index = len(self.storages)
            self.storages.append([self.at, size])
            self.known[key] = index
            self.kept.append(whole)
            self.at += size
            return index

    def tensor(self, t):
        with torch._C.DisableTorchFunction():
            t = t.detach()
            if t.layout is not torch.strided or t.dtype not in self.codec.names:
                raise Strange(f"a tensor of dtype {t.dtype} and layout {t.layout}")
            if t.is_meta:
                raise Strange("a tensor without memory (device `meta`)")
            if t.is_conj() or t.is_neg():
                t = t.resolve_conj().resolve_neg()
            return {
                "storage": self.storage(t),
                "dtype": self.codec.names[t.dtype],
                "sizes": list(t.shape),
                "strides": list(t.stride()),
                "offset": t.storage_offset(),
            }

    def value(self, v, depth=0):
        if depth > 16:
            raise Strange("a value nested deeper than 16")
        if v is None:
            return None
        if isinstance(v, bool):
            return {"b": v}
        if isinstance(v, torch.Tensor):
            return {"t": self.tensor(v)}
        if isinstance(v, int):
            if not -(1 << 63) <= v < 1 << 63:
                raise Strange(f"the integer {v}")
            return {"i": v}
        if isinstance(v, float):
            return {"f": v if math.isfinite(v) else str(v)}
        if isinstance(v, str):
            return {"s": v}
        if isinstance(v, torch.dtype):
            if v not in self.codec.names:
                raise Strange(f"the dtype {v}")
            return {"dtype": self.codec.names[v]}
        if isinstance(v, torch.device):
            return {"device": v.type}
        if isinstance(v, tuple):
            return {"tuple": [self.value(x, depth + 1) for x in v]}
        if isinstance(v, list):
            return {"list": [self.value(x, depth + 1) for x in v]}
        if hasattr(v, "item") and hasattr(v, "dtype") and getattr(v, "ndim", 1) == 0:
            return self.value(v.item(), depth + 1)
        raise Strange(f"a value of type {type(v).__name__}")


class Codec:
    """The exchange of one conversation."""

    def __init__(self, mapped, dtypes):
        self.mapped, self.bytes = mapped, len(mapped)
        self.anchor = ctypes.c_char.from_buffer(mapped)
        self.base = ctypes.addressof(self.anchor)
        self.dtypes = dtypes
        self.names = {dtype: name for name, dtype in dtypes.items()}

    def packer(self):
        return Packer(self)

    def read(self, offset, size):
        """A storage of its own with these bytes."""
        if not (offset >= 0 and size >= 0 and offset + size <= self.bytes):
            raise ValueError(f"{size} bytes at {offset} of an exchange of {self.bytes}")
        with torch._C.DisableTorchFunction():
            out = torch.empty(size, dtype=torch.uint8)
            if size:
                ctypes.memmove(out.data_ptr(), self.base + offset, size)
            return out.untyped_storage()

    def overwrite(self, storage, offset, size):
        """These bytes into a storage that is there."""
        if storage.nbytes() != size or offset + size > self.bytes:
            raise ValueError(f"{size} bytes for a storage of {storage.nbytes()}")
        if size:
            ctypes.memmove(storage.data_ptr(), self.base + offset, size)

    def storages(self, message):
        return [self.read(*s) for s in message.get("storages", [])]

    def tensor(self, described, storages):
        with torch._C.DisableTorchFunction():
            out = torch.empty(0, dtype=self.dtypes[described["dtype"]])
            return out.set_(
                storages[described["storage"]], described["offset"], described["sizes"], described["strides"]
            )

    def value(self, v, storages):
        if v is None:
            return None
        ((kind, x),) = v.items()
        if kind == "t":
            return self.tensor(x, storages)
        if kind == "f":
            return float(x)
        if kind == "dtype":
            return self.dtypes[x]
        if kind == "device":
            return torch.device(x)
        if kind in ("tuple", "list"):
            items = [self.value(y, storages) for y in x]
            return tuple(items) if kind == "tuple" else items
        return x
