"""Stops operations on tensors that are too large for a backend to be trusted with.

The MPS backend of PyTorch returns wrong values without an error once some tensor of an operation passes 2^32 elements,
and which tensor that is depends on the operation, the memory layout and the release. The boundary paper (arXiv
2609.22991, section 5) therefore uses one rule that names neither: **do not create or read a tensor of 2^32 or more
elements.** This module makes PyTorch keep it, with an exception in the place of a silent failure:

    import assay.guard
    assay.guard.install(device="mps")

What the guard does, operator by operator, in the forward and in the backward pass:

- It looks at every tensor that an operator takes or gives on the guarded device and raises `TensorTooLarge` when one
  has `limit` elements or more. The limit is inclusive, because PyTorch 2.4.1 returns zeros for a view of exactly 2^32
  elements.
- Products (`mm`, `bmm`, `addmm`, `baddbmm` and their relatives), fused attention, concatenation, transfers to the
  device and tensors created from a size are estimated before they run, because some releases abort the process inside
  the operator. Of attention the score matrix counts, `[batch, heads, queries, keys]`, whether or not it is ever stored.
- A **view counts by its own elements**, whatever its strides: a transposed view, and an expanded one that repeats a
  small storage. The **storage behind a view does not count**. It need not: the operation that would create a storage
  beyond the limit is stopped, and so is the slice that would take a view out of one, since it reads the whole tensor.
  Only a view that was taken before the guard was active passes, and the paper found those correct (section 4.2, "Large
  storage offsets"). Its evaluation (Table 9) counts a run of the offset series by its storage for the same reason: the
  run as a whole has to create it.

What it misses: tensors that live inside one operator (a convolution's unfolded input); nested and sparse tensors beyond
the elements that they report; attention over packed sequences (`cu_seqlens`), which counts by its operands alone; code
that runs in other threads than the one that installed the guard, except for the backward pass, which PyTorch runs with
the modes of the thread that started it; and whatever a compiler hides from dispatch modes.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Iterator
from math import prod
from typing import Any, Callable, Optional, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

__all__ = ["LIMIT", "Guard", "TensorTooLarge", "install", "installed", "uninstall"]

LIMIT = 2**32
"""The default limit in elements: tensors must stay below it."""

F = TypeVar("F", bound=Callable[..., Any])
# A tensor that an operator reads or is going to create: its name in messages, and its shape.
Sized = tuple


class TensorTooLarge(RuntimeError):
    """An operation would create or read a tensor that reaches the limit.

    `operation` is the operator's name, such as `aten::bmm`; `tensor` the name of the tensor in it and `shape` its
    shape; `elements` their product; `limit` in elements, inclusive; `operands` the shapes of the tensors that it was
    given. `batches_per_chunk` is, for batched products and attention, how many batches at a time keep every operand,
    the output and the scores below the limit (0: one alone reaches it; None: not such an operation).
    """

    def __init__(
        self,
        operation: str,
        tensor: str,
        shape: tuple[int, ...],
        device: torch.device,
        limit: int,
        operands: tuple[tuple[int, ...], ...],
        batches_per_chunk: int | None,
        advice: str,
    ) -> None:
        self.operation = operation
        self.tensor = tensor
        self.shape = shape
        self.elements = prod(shape)
        self.device = device
        self.limit = limit
        self.operands = operands
        self.batches_per_chunk = batches_per_chunk
        shapes = ", ".join(str(list(s)) for s in operands) or "no tensors"
        super().__init__(
            f"`{operation}` on {device} with operands {shapes}: `{tensor}` {list(shape)} has {self.elements} elements; "
            f"tensors must stay below {limit}; {advice}"
        )


# Estimates. Each takes an operator's arguments and the limit and gives what is too large, or None: its name and shape.
# They run before every such operator and must be quick.


def _mm(args: tuple, kwargs: dict, limit: int, at: int = 0) -> Sized | None:
    shape = (args[at].shape[0], args[at + 1].shape[1])
    return ("output", shape) if shape[0] * shape[1] >= limit else None


def _addmm(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    return _mm(args, kwargs, limit, 1)


def _bmm(args: tuple, kwargs: dict, limit: int, at: int = 0) -> Sized | None:
    batches, rows, _ = args[at].shape
    shape = (batches, rows, args[at + 1].shape[2])
    return ("output", shape) if batches * rows * shape[2] >= limit else None


def _baddbmm(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    return _bmm(args, kwargs, limit, 1)


def _linear(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    shape = (*args[0].shape[:-1], *args[1].shape[:-1])
    return ("output", shape) if prod(shape) >= limit else None


def _cat(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    if sum(t.numel() for t in args[0]) < limit:
        return None
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    # An empty tensor of one dim may stand among the others; it adds nothing and has not their shape.
    parts = [t for t in args[0] if t.numel()]
    shape = list(parts[0].shape)
    shape[dim] = sum(t.shape[dim] for t in parts)
    return "output", tuple(shape)


def _stack(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    if sum(t.numel() for t in args[0]) < limit:
        return None
    shape = list(args[0][0].shape)
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    shape.insert(dim if dim >= 0 else len(shape) + 1 + dim, len(args[0]))
    return "output", tuple(shape)


def _size(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    size = args[0] if args else kwargs["size"]
    return ("output", tuple(size)) if prod(size) >= limit else None


def _to_copy(args: tuple, kwargs: dict, limit: int) -> Sized | None:
    return ("output", tuple(args[0].shape)) if args[0].numel() >= limit else None


def _attention(query: int, key: int, heads_dim: int) -> Callable[[tuple, dict, int], Sized | None]:
    """Attention whose scores are `[…, heads, queries, keys]`; the heads lie before the length (-3) or after it (-2)."""

    def estimate(args: tuple, kwargs: dict, limit: int) -> Sized | None:
        if len(args) <= key:
            return None
        q, k = args[query].shape, args[key].shape
        if len(q) < 3:
            return None
        if heads_dim == -2 and len(q) == 4:
            shape = (q[0], q[2], q[1], k[1])
        elif heads_dim == -3:
            shape = (*q[:-1], k[-2])
        else:
            return None  # Packed sequences: their lengths lie in a tensor on the device.
        return ("scores", tuple(shape)) if prod(shape) >= limit else None

    return estimate


def _module_attention(heads: int) -> Callable[[tuple, dict, int], Sized | None]:
    """The fused layers of `torch.nn`, whose queries and keys are `[batch, length, features]`."""

    def estimate(args: tuple, kwargs: dict, limit: int) -> Sized | None:
        q, k = args[0].shape, (args[1] if isinstance(args[1], Tensor) else args[0]).shape
        if len(q) != 3:
            return None
        shape = (q[0], args[heads], q[1], k[1])
        return ("scores", shape) if prod(shape) >= limit else None

    return estimate


Estimate = Callable[[tuple, dict, int], Optional[Sized]]
ESTIMATES: dict[str, Estimate] = {
    "aten::mm": _mm,
    "aten::_int_mm": _mm,
    "aten::_scaled_mm": _mm,
    "aten::addmm": _addmm,
    "aten::addmm_": _addmm,
    "aten::_addmm_activation": _addmm,
    "aten::bmm": _bmm,
    "aten::baddbmm": _baddbmm,
    "aten::baddbmm_": _baddbmm,
    "aten::linear": _linear,
    "aten::cat": _cat,
    "aten::stack": _stack,
    "aten::_to_copy": _to_copy,
    "aten::_native_multi_head_attention": _module_attention(4),
    "aten::_transformer_encoder_layer_fwd": _module_attention(2),
}
# Where an operator of `ESTIMATES` has its batched operands, for the advice.
BATCHED = {"aten::bmm": 0, "aten::baddbmm": 1, "aten::baddbmm_": 1}
ROWS = {"aten::mm": 0, "aten::addmm": 1, "aten::addmm_": 1, "aten::_int_mm": 0, "aten::_scaled_mm": 0}


def _attention_arguments(schema: Any) -> tuple[int, int] | None:
    """Where an operator of fused attention takes queries and keys; None for any other."""
    name = schema.name
    if not ("scaled_dot_product" in name or name.startswith(("aten::_flash_attention", "aten::_efficient_attention"))):
        return None
    names = [a.name for a in schema.arguments]
    return (names.index("query"), names.index("key")) if "query" in names and "key" in names else None


def _estimate_of(schema: Any) -> Estimate | None:
    found = ESTIMATES.get(schema.name)
    if found is not None:
        return found
    where = _attention_arguments(schema)
    if where is not None:
        return _attention(*where, -3 if "scaled_dot_product" in schema.name else -2)
    arguments = schema.arguments
    creates = any(a.name == "device" for a in arguments) and not any("Tensor" in str(a.type) for a in arguments)
    return _size if creates and arguments[0].name == "size" else None


# What is known of an operator after its first use: what its positional arguments are, up to the last one that can hold
# tensors (one of `_OTHER` to `_ANY` each); whether a keyword argument can; what its result is; its estimate. Keyed by
# identity, since hashing an operator runs Python; the operator is kept so that its identity cannot pass to another.
_OTHER, _ONE, _LIST, _ANY = range(4)
_KNOWN: dict[int, tuple[tuple[int, ...], bool, int, Estimate | None, Any]] = {}


def _kind(type_name: str) -> int:
    if "Tensor" not in type_name:
        return _OTHER
    if type_name in ("Tensor", "Optional[Tensor]"):
        return _ONE
    return _LIST if type_name in ("List[Tensor]", "List[Optional[Tensor]]") else _ANY


def _learn(func: Any) -> tuple[tuple[int, ...], bool, int, Estimate | None, Any]:
    schema = getattr(func, "_schema", None)
    if schema is None:
        # A higher-order operator has no schema: look at everything.
        known: tuple[tuple[int, ...], bool, int, Estimate | None, Any] = ((_ANY,) * 64, True, _ANY, None, func)
    else:
        kinds = [_kind(str(a.type)) for a in schema.arguments if not a.kwarg_only]
        while kinds and kinds[-1] == _OTHER:
            kinds.pop()
        returns = [_kind(str(r.type)) for r in schema.returns]
        result = returns[0] if len(returns) == 1 else _ANY if any(returns) else _OTHER
        named = any(a.kwarg_only and _kind(str(a.type)) for a in schema.arguments)
        known = (tuple(kinds), named, result, _estimate_of(schema), func)
    _KNOWN[id(func)] = known
    return known


def _tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a value, through lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)


class Guard(TorchDispatchMode):
    """The guard as a context manager and as a decorator, for one device and one limit.

        with Guard("mps"):
            model(batch)

        @Guard("mps")
        def step(batch): ...

    `device` is a device string; `"cuda"` means every CUDA device, None means every device there is. `limit` is in
    elements: tensors must stay below it.
    """

    def __init__(self, device: str | torch.device | None = "mps", limit: int = LIMIT) -> None:
        super().__init__()
        self.configure(device, limit)

    def configure(self, device: str | torch.device | None, limit: int) -> None:
        """Changes the guarded device and the limit, also of a guard that is active."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"the limit is a positive number of elements, not {limit!r}")
        self.device = None if device is None else torch.device(device)
        self.limit = limit

    def __call__(self, function: F) -> F:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError("a guard decorates plain functions; inside a coroutine or generator use `with`")

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            # One of its own for each call: a mode that is active in two threads at once would mix up what it restores.
            with Guard(self.device, self.limit):
                return function(*args, **kwargs)

        return guarded  # type: ignore[return-value]

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        limit = self.limit
        kinds, named, result, estimate, _ = _KNOWN.get(id(func)) or _learn(func)
        for kind, arg in zip(kinds, args):
            if kind == _ONE:
                # None, and a number in a tensor's place, are possible.
                if isinstance(arg, Tensor) and arg.numel() >= limit:
                    self._refuse_if_here(func, args, kwargs, "operand", arg)
            elif kind == _LIST:
                for t in arg:
                    if isinstance(t, Tensor) and t.numel() >= limit:
                        self._refuse_if_here(func, args, kwargs, "operand", t)
            elif kind != _OTHER:
                self._look_at(func, args, kwargs, "operand", arg)
        if not kwargs:
            kwargs = {}
        elif named:
            self._look_at(func, args, kwargs, "operand", kwargs)
        if estimate is not None:
            found = estimate(args, kwargs, limit)
            if found is not None:
                self._refuse_estimate(func, args, kwargs, *found)
        out = func(*args, **kwargs)
        if result == _ONE:
            if isinstance(out, Tensor) and out.numel() >= limit:
                self._refuse_if_here(func, args, kwargs, "output", out)
        elif result != _OTHER:
            self._look_at(func, args, kwargs, "output", out)
        return out

    # What follows runs for lists, keyword arguments and results of several tensors, and where something is too large.

    def _here(self, device: torch.device) -> bool:
        mine = self.device
        return mine is None or (device.type == mine.type and mine.index in (None, device.index))

    def _look_at(self, func: Any, args: tuple, kwargs: dict | None, role: str, value: Any) -> None:
        limit = self.limit
        if isinstance(value, (list, tuple)):
            for v in value:
                if isinstance(v, Tensor):
                    if v.numel() >= limit:
                        self._refuse_if_here(func, args, kwargs, role, v)
                elif isinstance(v, (list, tuple, dict)):
                    self._look_at(func, args, kwargs, role, v)
        elif isinstance(value, dict):
            self._look_at(func, args, kwargs, role, tuple(value.values()))
        elif isinstance(value, Tensor) and value.numel() >= limit:
            self._refuse_if_here(func, args, kwargs, role, value)

    def _refuse_if_here(self, func: Any, args: tuple, kwargs: dict | None, role: str, t: Tensor) -> None:
        if self._here(t.device):
            self._refuse(func, args, kwargs, role, tuple(t.shape), t.device)

    def _refuse_estimate(self, func: Any, args: tuple, kwargs: dict, role: str, shape: tuple) -> None:
        # The result's device: as asked for, or where the operands are, or the default of a factory.
        device = kwargs.get("device")
        if device is None:
            first = next(_tensors(args), None)
            device = torch.get_default_device() if first is None else first.device
        device = torch.device(device)
        if self._here(device):
            self._refuse(func, args, kwargs, role, shape, device)

    def _refuse(
        self, func: Any, args: tuple, kwargs: dict | None, role: str, shape: tuple, device: torch.device
    ) -> None:
        schema = getattr(func, "_schema", None)
        name = schema.name if schema is not None else str(func)
        operands = tuple(tuple(t.shape) for t in _tensors([args, kwargs]))
        batches, advice = _advice(name, schema, args, self.limit)
        raise TensorTooLarge(name, role, shape, device, self.limit, operands, batches, advice)


def _advice(name: str, schema: Any, args: tuple, limit: int) -> tuple[int | None, str]:
    """How many batches at a time are safe, and what to do, in words."""

    def chunks(largest: int, one: str, many: str) -> tuple[int, str]:
        safe = (limit - 1) // largest if largest else limit
        if safe == 0:
            return 0, f"one {one} alone reaches the limit"
        return safe, f"at most {safe} {many} a chunk keep every operand and the output below it"

    attention = None if schema is None else _attention_arguments(schema)
    if name in BATCHED:
        a, b = args[BATCHED[name]].shape, args[BATCHED[name] + 1].shape
        return chunks(max(a[1] * a[2], b[1] * b[2], a[1] * b[2]), "batch", "batches")
    if attention is not None and "scaled_dot_product" in name and len(args) > max(attention):
        q, k = args[attention[0]].shape, args[attention[1]].shape
        each = [prod(t.shape[1:]) for t in args if isinstance(t, Tensor) and t.dim() == len(q)]
        return chunks(max(prod(q[1:-1]) * k[-2], *each), "batch", "batches")
    if name in ROWS:
        a, b = args[ROWS[name]].shape, args[ROWS[name] + 1].shape
        if b[0] * b[1] < limit:
            return None, chunks(max(b[0], b[1]), "row", "rows")[1]
    return None, "split it into chunks before they reach the device"


class _PerThread(threading.local):
    guard: Guard | None = None


_thread = _PerThread()


def install(device: str | torch.device | None = "mps", limit: int = LIMIT) -> Guard:
    """Guards every operation of this thread from now on, and its backward passes; returns the guard.

    `device` and `limit` as for `Guard`. A second call changes the guard that is there. Another thread that launches
    operations calls this itself: PyTorch keeps dispatch modes by thread.
    """
    if _thread.guard is None:
        guard = Guard(device, limit)
        guard.__enter__()
        _thread.guard = guard
    else:
        _thread.guard.configure(device, limit)
    return _thread.guard


def installed() -> Guard | None:
    """The guard that `install` made active in this thread."""
    return _thread.guard


def uninstall() -> None:
    """Ends what `install` began in this thread; does nothing where nothing is installed.

    Raises `RuntimeError` inside a dispatch mode that was entered after the guard, since modes end in reverse order.
    """
    guard = _thread.guard
    if guard is None:
        return
    if _get_current_dispatch_mode() is not guard:
        raise RuntimeError("a dispatch mode that was entered after the guard is still active; leave it first")
    guard.__exit__(None, None, None)
    _thread.guard = None
