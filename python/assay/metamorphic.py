"""One large batch against its chunks: finds silent failures without another oracle.

Samples of a batch do not interact in inference, so one call must give what its pieces give (the boundary paper, arXiv
2609.22991, section 4.5, "Reference"):

    f(concat(X1, …, Xk)) = concat(f(X1), …, f(Xk))

`check` runs both sides and says which samples differ, in which module and attention head the difference begins, whether
it follows the position in the batch or the content of the sample (a second run with the batch shifted), and, given
labels, what it does to predictions:

    from assay.metamorphic import check
    report = check(model, batch, chunk=256, heads=12, output=lambda o: o.logits, shift=True, labels=labels)
    print(report)
    report.plot("errors.svg")

The chunks are the reference, so `chunk` must be small enough that no tensor of a chunk comes near a boundary. Results
of chunks are kept on the CPU, and of the large call nothing is read but slices of a chunk's size: no comparison runs
on the device under test, and the shifted batch is put together on the CPU.

What it misses: a fault that chunk and batch share; with modules, a difference between two modules shows in the first
one that is called after it, and code that is no module has no name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Callable

import torch
from torch import Tensor, nn

__all__ = ["LabelEffect", "ModuleDifference", "Report", "ShiftedRun", "check", "exact_mcnemar", "sample_errors"]

TOLERANCE = 1e-3
"""A sample differs when its relative error exceeds this (the paper's threshold of a corrupted text, section 4.5)."""

AGREEMENT = 0.9
"""How much two sets of samples overlap (intersection over union) to count as the same set, in the shifted run."""


@dataclass
class ModuleDifference:
    """How the output of one call of one module in the large batch compares with the chunks.

    `name` is the dotted name in the model (`""` is the model itself), `call` counts the calls of one forward pass from
    0, `kind` is the module's class. `differing` counts samples above the tolerance, `largest` is the largest relative
    error. `sample` is the first that differs; `head` its first head that does, and `heads` all of its heads that do,
    for outputs with a dim of heads.
    """

    name: str
    call: int
    kind: str
    differing: int
    largest: float
    sample: int | None
    head: int | None
    heads: list[int]


@dataclass(eq=False)
class ShiftedRun:
    """The large call again on the batch cyclically shifted: position p holds sample (p + by) mod n.

    `errors` is by position, `[n]` float64. `positions` differ in this run and hold `samples`. `same_positions` and
    `same_samples` are the overlaps (intersection over union) with what differed in the first run. `verdict` is
    `position` or `content` where one overlap is at least `AGREEMENT` and larger than the other, `clean` where nothing
    differed in either run, and `undecided` otherwise (everything differs, or neither explains it).
    """

    by: int
    errors: Tensor
    positions: list[int]
    samples: list[int]
    same_positions: float
    same_samples: float
    verdict: str


@dataclass
class LabelEffect:
    """What the differences do to predictions (the largest of the last dim), the chunks being the reference.

    Recalls are by class, NaN for a class without labels. `differing_*` are over the differing samples alone (NaN where
    there are none). `only_chunks_right` and `only_batch_right` count samples, and `p` is the exact McNemar test on
    them.
    """

    changed: list[int]
    accuracy: float
    chunks_accuracy: float
    recall: list[float]
    chunks_recall: list[float]
    differing_accuracy: float
    differing_chunks_accuracy: float
    differing_recall: list[float]
    differing_predictions: list[int]
    differing_chunks_predictions: list[int]
    only_chunks_right: int
    only_batch_right: int
    p: float


@dataclass(eq=False)
class Report:
    """The outcome of `check`.

    `errors` is by position in the batch, `[samples]` float64: max|batch - chunks| / max|chunks| of the sample's output
    (the paper's Eq. (1)), infinite for NaN. `differing` lists the positions above `tolerance`. `modules` holds the
    calls that were compared, in the order in which they end, up to the group with the first difference.
    """

    samples: int
    chunk: int
    tolerance: float
    errors: Tensor
    differing: list[int]
    modules: list[ModuleDifference] = field(default_factory=list)
    shifted: ShiftedRun | None = None
    labels: LabelEffect | None = None

    @property
    def first_sample(self) -> int | None:
        """The first position that differs."""
        return self.differing[0] if self.differing else None

    @property
    def first_module(self) -> ModuleDifference | None:
        """The first module call whose output differs."""
        return next((m for m in self.modules if m.differing), None)

    @property
    def clean(self) -> bool:
        """Whether nothing differs, in the shifted run neither."""
        return not self.differing and (self.shifted is None or not self.shifted.positions)

    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON. Numbers that JSON lacks are the strings `inf` and `nan`."""
        plain = _plain(self)
        first = self.first_module
        plain |= {"first_sample": self.first_sample, "first_module": _plain(first), "clean": self.clean}
        return json.dumps(plain, indent=indent, allow_nan=False)

    def plot(self, path: str | Path) -> None:
        """Writes the errors by position as an SVG file, the shifted run below the first (as the paper's Figure 2)."""
        path = Path(path)
        if path.suffix != ".svg":
            raise ValueError(f"`{path.name}`: the plot is an SVG file, so its name ends in `.svg`")
        path.write_text(_svg(self), encoding="utf-8")

    def __str__(self) -> str:
        n, found = self.samples, len(self.differing)
        if not found:
            lines = [f"{n} samples in one batch equal their chunks of {self.chunk} (tolerance {self.tolerance:g})"]
        else:
            share = 100 * found / n
            lines = [
                f"{found} of {n} samples ({share:.1f}%) differ from their chunks of {self.chunk}, the first at "
                f"position {self.first_sample}; largest relative error {float(self.errors.max()):.3g}"
            ]
        m = self.first_module
        if m is not None:
            where = f"sample {m.sample}" + ("" if m.head is None else f", head {m.head}")
            lines.append(f"first in `{m.name or 'the model'}` ({m.kind}, call {m.call}) at {where}")
        elif found and self.modules:
            lines.append("no module's output differs: the difference arises outside of modules, after the last one")
        if self.shifted is not None:
            s = self.shifted
            lines.append(
                f"shifted by {s.by}: {s.verdict} ({len(s.positions)} positions differ; "
                f"{100 * s.same_positions:.0f}% the same positions, {100 * s.same_samples:.0f}% the same samples)"
            )
        if self.labels is not None:
            e = self.labels
            lines.append(
                f"{len(e.changed)} predictions change; accuracy {e.chunks_accuracy:.3f} to {e.accuracy:.3f}; right "
                f"only in chunks {e.only_chunks_right}, only in the batch {e.only_batch_right}, McNemar p = {e.p:.2g}"
            )
        return "\n".join(lines)


def check(
    function: Callable[..., Any],
    batch: Any,
    *,
    chunk: int,
    output: Callable[[Any], Tensor] | None = None,
    tolerance: float = TOLERANCE,
    device: str | torch.device | None = None,
    modules: nn.Module | bool = True,
    heads: int | None = None,
    shift: int | bool = False,
    labels: Tensor | list[int] | None = None,
    memory_bytes: int = 4 << 30,
) -> Report:
    """Compares `function` on the whole batch with `function` on its chunks.

    `batch` is a tensor `[n, …]`, or a tuple (positional arguments) or dict (keyword arguments) of such tensors; what is
    no tensor is passed as it is, and what all samples share belongs into the function. `chunk` is in samples. `device`,
    when given, is where the function's arguments are moved just before each call, so that chunks are built before they
    reach it. `output` picks the tensor `[n, …]` to compare from the function's result; by default the first one in it.

    `modules` is the model whose module calls are compared where the outputs differ: by default the function, where it
    is one; False for none. `heads` is the model's number of attention heads: an output `[n, heads, …]`, `[n, length,
    heads, …]` or `[n · heads, …]` is then compared head by head. References of modules take at most `memory_bytes` on
    the CPU at a time; when all of them need more, the large call is repeated for one group of modules after another.

    `shift` repeats the large call on the batch shifted by so many samples (True: by half of them). `labels` are class
    numbers, `[n]`, for outputs `[n, classes]`.

    Raises `ValueError` for a batch that cannot be split so, and for a model in training mode, in which samples
    interact. What the function raises passes through: such a failure is not silent.
    """
    n = _samples(batch)
    if not 1 <= chunk < n:
        raise ValueError(f"chunks of {chunk} samples of a batch of {n}: the chunk is smaller than the batch")
    chosen = function if modules is True else modules
    model = chosen if isinstance(chosen, nn.Module) else None
    if model is not None and model.training:
        raise ValueError(
            "the model is in training mode, in which samples of a batch may interact; call `.eval()` first"
        )
    by = n // 2 if shift is True else int(shift)
    if by and not 0 < by < n:
        raise ValueError(f"a shift by {by} of a batch of {n}")
    pick = output or _first_tensor
    bounds = [(i, min(n, i + chunk)) for i in range(0, n, chunk)]

    def call(part: Any) -> Any:
        part = _each(part, lambda t: t if device is None else t.to(device))
        if isinstance(part, dict):
            return function(**part)
        return function(*part) if isinstance(part, tuple) else function(part)

    with torch.no_grad():
        wanted = []
        for i, j in bounds:
            result = pick(call(_slice(batch, i, j)))
            if result.shape[:1] != (j - i,):
                raise ValueError(f"a chunk of {j - i} samples gives an output of shape {list(result.shape)}")
            wanted.append(_keep(result))
        got, errors = _compare(pick(call(batch)), wanted, bounds, n)
        report = Report(n, chunk, tolerance, errors, _above(errors, tolerance))
        if model is not None and report.differing:
            report.modules = _locate(model, call, batch, bounds, heads, tolerance, memory_bytes)
        if by:
            report.shifted = _shifted(call, pick, batch, wanted, bounds, by, report)
        if labels is not None:
            report.labels = _effect(got, torch.cat(wanted), torch.as_tensor(labels).cpu(), report.differing)
    return report


def sample_errors(got: Tensor, want: Tensor, dims: int = 1) -> Tensor:
    """max|got - want| / max|want| over all but the first `dims` dims, in float64.

    Shapes: both `[n, …]`, gives `[n]` (`dims` = 2: `[n, heads, …]` and `[n, heads]`). Elements that are equal, NaN with
    NaN as well, add nothing; any other NaN counts as infinite, and so does a difference where `want` is zero
    throughout.

    Source: Eq. (1) of the boundary paper, section 3.
    """
    if got.shape != want.shape:
        raise ValueError(f"shapes {list(got.shape)} and {list(want.shape)} differ")
    if got.is_complex():
        got, want = torch.view_as_real(got), torch.view_as_real(want)
    lead = got.shape[:dims]
    if got.numel() == 0:
        return torch.zeros(lead, dtype=torch.float64)
    got, want = (t.to(torch.float64).reshape(*lead, -1) for t in (got, want))
    same = (got == want) | (got.isnan() & want.isnan())
    difference = (got - want).abs().nan_to_num(nan=math.inf, posinf=math.inf).masked_fill(same, 0.0)
    largest = difference.amax(-1)
    scale = want.abs().nan_to_num(nan=0.0, posinf=0.0).amax(-1)
    return torch.where(largest == 0, 0.0, torch.where(scale == 0, math.inf, largest / scale))


def exact_mcnemar(b: int, c: int) -> float:
    """The two-sided exact McNemar test: the probability, were both outcomes of a discordant pair equally likely, of a
    split at least as uneven as `b` to `c`.

    Source: the binomial form of the test; section 4.5 of the boundary paper uses it (266 to 114, p = 4.1e-15).
    """
    n = b + c
    tail = sum(math.comb(n, i) for i in range(min(b, c) + 1))
    # Integers of any size divide exactly rounded; their floats would overflow beyond n = 1023.
    return min(1.0, 2 * tail / 2**n)


# Batches: a tensor, or a tuple or dict with tensors in it.


def _each(batch: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, tuple):
        return tuple(change(v) if isinstance(v, Tensor) else v for v in batch)
    return {k: change(v) if isinstance(v, Tensor) else v for k, v in batch.items()}


def _samples(batch: Any) -> int:
    if not isinstance(batch, (Tensor, tuple, dict)):
        raise ValueError(f"the batch is a tensor, or a tuple or dict of tensors, not {type(batch).__name__}")
    shapes: list[tuple[int, ...]] = []
    _each(batch, lambda t: shapes.append(tuple(t.shape)))
    if not shapes or any(not s or s[0] != shapes[0][0] for s in shapes):
        raise ValueError(f"the tensors of a batch have the samples as their first dim, and as many: {shapes}")
    return shapes[0][0]


def _slice(batch: Any, i: int, j: int) -> Any:
    return _each(batch, lambda t: t[i:j])


def _keep(t: Tensor) -> Tensor:
    """A copy on the CPU, whatever is done to the tensor in place later."""
    return t.detach().to("cpu", copy=True)


def _rolled(t: Tensor, by: int, bounds: list[tuple[int, int]]) -> Tensor:
    """The tensor shifted by so many samples, on its own device; put together on the CPU from small pieces."""
    host = torch.cat([t[i:j].cpu() for i, j in bounds])
    return torch.cat([host[by:], host[:by]]).to(t.device)


def _first_tensor(value: Any) -> Tensor:
    for t in _tensors(value):
        return t
    raise ValueError(f"no tensor in a result of type {type(value).__name__}; say with `output` which one to compare")


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from _tensors(getattr(value, f.name))


# Comparisons.


def _above(errors: Tensor, tolerance: float) -> list[int]:
    return torch.nonzero(errors > tolerance).flatten().tolist()


def _compare(whole: Tensor, wanted: list[Tensor], bounds: list[tuple[int, int]], n: int) -> tuple[Tensor, Tensor]:
    """The large call's output on the CPU, taken in slices, and its error by position."""
    if whole.shape[:1] != (n,):
        raise ValueError(f"a batch of {n} samples gives an output of shape {list(whole.shape)}")
    parts = [_keep(whole[i:j]) for i, j in bounds]
    return torch.cat(parts), torch.cat([sample_errors(got, want) for got, want in zip(parts, wanted)])


def _shifted(
    call: Callable[[Any], Any],
    pick: Callable[[Any], Tensor],
    batch: Any,
    wanted: list[Tensor],
    bounds: list[tuple[int, int]],
    by: int,
    report: Report,
) -> ShiftedRun:
    n = report.samples
    reference = torch.cat(wanted)
    reference = torch.cat([reference[by:], reference[:by]])
    whole = pick(call(_each(batch, lambda t: _rolled(t, by, bounds))))
    _, errors = _compare(whole, [reference[i:j] for i, j in bounds], bounds, n)
    positions = _above(errors, report.tolerance)
    samples = sorted((p + by) % n for p in positions)
    before = set(report.differing)
    same_positions, same_samples = _overlap(before, set(positions)), _overlap(before, set(samples))
    if not before and not positions:
        verdict = "clean"
    elif same_positions >= AGREEMENT and same_positions > same_samples:
        verdict = "position"
    elif same_samples >= AGREEMENT and same_samples > same_positions:
        verdict = "content"
    else:
        verdict = "undecided"
    return ShiftedRun(by, errors, positions, samples, same_positions, same_samples, verdict)


def _overlap(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _effect(got: Tensor, want: Tensor, labels: Tensor, differing: list[int]) -> LabelEffect:
    if got.dim() != 2 or labels.shape != got.shape[:1]:
        raise ValueError(f"labels {list(labels.shape)} for outputs {list(got.shape)}: expected [n] and [n, classes]")
    classes = max(got.shape[1], int(labels.max()) + 1)
    batch, chunks = got.argmax(-1), want.argmax(-1)
    there = torch.zeros(len(labels), dtype=torch.bool)
    there[differing] = True
    everywhere = torch.ones_like(there)

    def accuracy(predicted: Tensor, where: Tensor) -> float:
        return float((predicted == labels)[where].double().mean())

    def recall(predicted: Tensor, where: Tensor) -> list[float]:
        return [accuracy(predicted, where & (labels == c)) for c in range(classes)]

    def count(predicted: Tensor) -> list[int]:
        return torch.bincount(predicted[there], minlength=classes).tolist()

    right, chunks_right = batch == labels, chunks == labels
    b, c = int((chunks_right & ~right).sum()), int((right & ~chunks_right).sum())
    return LabelEffect(
        changed=torch.nonzero(batch != chunks).flatten().tolist(),
        accuracy=accuracy(batch, everywhere),
        chunks_accuracy=accuracy(chunks, everywhere),
        recall=recall(batch, everywhere),
        chunks_recall=recall(chunks, everywhere),
        differing_accuracy=accuracy(batch, there),
        differing_chunks_accuracy=accuracy(chunks, there),
        differing_recall=recall(batch, there),
        differing_predictions=count(batch),
        differing_chunks_predictions=count(chunks),
        only_chunks_right=b,
        only_batch_right=c,
        p=exact_mcnemar(b, c),
    )


# Modules. A key is a module's name, its call within one forward pass, and a tensor's place in its output.

_Key = tuple  # (str, int, int)


@contextmanager
def _watched(model: nn.Module, see: Callable[[_Key, nn.Module, Tensor], None]) -> Iterator[dict[str, int]]:
    """Calls `see` with every tensor that a module of the model gives, as the module ends.

    Gives the counts of calls, which are to be cleared between passes.
    """
    calls: dict[str, int] = {}

    def hook_for(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, result: Any) -> None:
            call = calls[name] = calls.get(name, -1) + 1
            for place, t in enumerate(_tensors(result)):
                see((name, call, place), module, t)

        return hook

    handles = [module.register_forward_hook(hook_for(name)) for name, module in model.named_modules()]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _per_sample(t: Tensor, n: int, heads: int | None) -> tuple[int, bool] | None:
    """How many leading entries a sample has, and whether there is a dim of heads; None for a tensor without samples."""
    if heads and heads > 1 and t.dim() >= 2 and t.shape[0] == n * heads:
        return heads, True
    if t.dim() >= 1 and t.shape[0] == n:
        return 1, bool(heads) and t.dim() >= 4 and heads in (t.shape[1], t.shape[2])
    return None


def _by_head(t: Tensor, each: int, heads: int) -> Tensor:
    """`[n, heads, …]`, from any of the three forms of `_per_sample`."""
    if each > 1:
        return t.reshape(-1, heads, *t.shape[1:])
    return t if t.shape[1] == heads else t.movedim(2, 1)


def _locate(
    model: nn.Module,
    call: Callable[[Any], Any],
    batch: Any,
    bounds: list[tuple[int, int]],
    heads: int | None,
    tolerance: float,
    memory_bytes: int,
) -> list[ModuleDifference]:
    n = bounds[-1][1]
    size = bounds[0][1]
    # What a chunk's outputs take, in the order in which modules end.
    sizes: dict[_Key, int] = {}
    kinds: dict[_Key, str] = {}

    def measure(key: _Key, module: nn.Module, t: Tensor) -> None:
        if _per_sample(t, size, heads) is not None:
            sizes[key] = t.numel() * t.element_size()
            kinds[key] = type(module).__name__

    with _watched(model, measure):
        call(_slice(batch, 0, size))

    found: list[ModuleDifference] = []
    for group in _groups(sizes, memory_bytes * size // n):
        errors = _group_errors(model, call, batch, bounds, heads, set(group))
        found += [_difference(key, kinds[key], errors[key], tolerance) for key in group if key in errors]
        if any(m.differing for m in found):
            break
    return found


def _groups(sizes: dict[_Key, int], budget: int) -> Iterator[list[_Key]]:
    """Keys in their order, in groups whose sizes stay within the budget; one that exceeds it is a group by itself."""
    group: list[_Key] = []
    used = 0
    for key, size in sizes.items():
        if group and used + size > budget:
            yield group
            group, used = [], 0
        group.append(key)
        used += size
    if group:
        yield group


def _group_errors(
    model: nn.Module,
    call: Callable[[Any], Any],
    batch: Any,
    bounds: list[tuple[int, int]],
    heads: int | None,
    group: set[_Key],
) -> dict[_Key, tuple[Tensor, bool]]:
    """The errors `[n, heads or 1]` of every call of the group whose output has samples in chunks and batch alike."""
    n = bounds[-1][1]
    wanted: dict[_Key, list[Tensor]] = {key: [] for key in group}

    def keep(key: _Key, module: nn.Module, t: Tensor) -> None:
        if key in group:
            wanted[key].append(_keep(t))

    with _watched(model, keep) as calls:
        for i, j in bounds:
            calls.clear()
            call(_slice(batch, i, j))

    errors: dict[_Key, tuple[Tensor, bool]] = {}

    def compare(key: _Key, module: nn.Module, t: Tensor) -> None:
        form = _per_sample(t, n, heads)
        if key not in group or form is None or len(wanted[key]) != len(bounds):
            return
        each, has_heads = form
        parts = []
        for (i, j), want in zip(bounds, wanted[key]):
            if _per_sample(want, j - i, heads) != form or want.shape[1:] != t.shape[1:]:
                return  # Its first dim only happened to be the chunk's size.
            got = t[i * each : j * each].detach().cpu()
            if has_heads:
                got, want = (_by_head(x, each, heads or 1) for x in (got, want))
            parts.append(sample_errors(got, want, 2) if has_heads else sample_errors(got, want)[:, None])
        errors[key] = (torch.cat(parts), has_heads)

    with _watched(model, compare):
        call(batch)
    return errors


def _difference(key: _Key, kind: str, found: tuple[Tensor, bool], tolerance: float) -> ModuleDifference:
    errors, has_heads = found
    above = errors > tolerance
    samples = torch.nonzero(above.any(1)).flatten().tolist()
    first = samples[0] if samples else None
    heads = torch.nonzero(above[first]).flatten().tolist() if samples and has_heads else []
    return ModuleDifference(
        name=key[0],
        call=key[1],
        kind=kind,
        differing=len(samples),
        largest=float(errors.max()),
        sample=first,
        head=heads[0] if heads else None,
        heads=heads,
    )


# Writing.


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Tensor):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


# Where exact agreement is drawn, and the largest error that is (as in the paper's Figure 2).
_FLOOR, _CEILING = 1e-9, 1e2
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 180, 64, 34, 58


def _svg(report: Report) -> str:
    panels = [("in order", report.errors, report.differing)]
    if report.shifted is not None:
        s = report.shifted
        panels.append((f"shifted by {s.by}: {s.verdict}", s.errors, s.positions))
    n = report.samples
    decades = math.log10(_CEILING / _FLOOR)

    def x(position: float) -> float:
        return _LEFT + _WIDTH * (position + 0.5) / n

    def y(error: float, top: float) -> float:
        error = min(max(error, _FLOOR), _CEILING)
        return top + _HEIGHT * (1 - math.log10(error / _FLOOR) / decades)

    height = _TOP + len(panels) * (_HEIGHT + _GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{_LEFT + _WIDTH + 20}" height="{height}" fill="white"/>',
    ]
    for index, (title, errors, positions) in enumerate(panels):
        top = _TOP + index * (_HEIGHT + _GAP)
        out.append(
            f'<text x="{_LEFT}" y="{top - 10}" font-weight="bold">relative error by position, {title} '
            f"({len(positions)} of {n} differ)</text>"
        )
        out.append(f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#999"/>')
        for exponent in range(-9, 3, 3):
            at = y(10.0**exponent, top)
            label = "≤1e-9" if exponent == -9 else f"1e{exponent}"
            out.append(f'<line x1="{_LEFT - 4}" x2="{_LEFT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#999"/>')
            out.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
        at = y(report.tolerance, top)
        out.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{at:.1f}" y2="{at:.1f}" stroke="#888" '
            f'stroke-dasharray="6 4"/>'
        )
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            position = round(share * (n - 1))
            out.append(f'<text x="{x(position):.1f}" y="{top + _HEIGHT + 16}" text-anchor="middle">{position}</text>')
        wrong = set(positions)
        for color, chosen in (("#3b6ea5", False), ("#c0392b", True)):
            marks = "".join(
                f"M{x(p):.1f} {y(e, top):.1f}h0" for p, e in enumerate(errors.tolist()) if (p in wrong) == chosen
            )
            if marks:
                out.append(f'<path d="{marks}" stroke="{color}" stroke-width="4" stroke-linecap="round"/>')
        if positions:
            at = _LEFT + _WIDTH * positions[0] / n
            out.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{top + _HEIGHT}" stroke="#c0392b" '
                f'stroke-dasharray="2 3"/>'
            )
            # The label on the side where there is room.
            anchor, aside = ("end", -5) if positions[0] > n / 2 else ("start", 5)
            out.append(
                f'<text x="{at + aside:.1f}" y="{top + 14}" text-anchor="{anchor}" fill="#c0392b">'
                f"from {positions[0]}</text>"
            )
    out.append("</svg>")
    return "\n".join(out) + "\n"
