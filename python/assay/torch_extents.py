"""Extents at which a CPU device affords a problem file: module-level numbers made smaller until the work fits.

The work is counted, not run: the module and its inputs are made on the meta device, where tensors have shapes and no
elements. Numbers are halved, those that are called a batch first, then free extents, then those that look like the
length of a reduction; names with the same number go together, so that what is square stays square. A cut that the
module refuses is not made; where none is left, two numbers are cut together.
"""

from __future__ import annotations

import itertools
import math
import re

from torch_export import overload
from worker_protocol import TORCH_MISSING

if TORCH_MISSING is None:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
else:
    TorchDispatchMode = object

# Not cut where it is at most `FEW`: what an operator is, not how much it has to do. More of it is an extent by another
# name (`layer_sizes`, `num_classes`), cut when the others are small.
FEW = 64
FIXED = re.compile(
    r"kernel|stride|pad|dilat|group|pool|scale|head|level|layer|num_|dim$|axis|class|reduct|patch|expan", re.I
)
BATCH = re.compile(r"batch|^bs$|^b$", re.I)
INNER = re.compile(
    r"^in_|^in$|input_size|in_feat|in_chan|hidden|embed|^k$|^l$|features$|channels?$|vocab|state|model", re.I
)
# Sizes down to which the free extents, then the inner ones are cut, and again.
LEAST = (16, 4)
STEPS = 200


class Work(TorchDispatchMode):
    """Counts what the plain kernels of a forward pass would do: elements, and terms of sums."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = overload(func)
        result = out[0] if isinstance(out, (tuple, list)) and out else out
        if not isinstance(result, torch.Tensor):
            return out
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        terms = 1
        if name == "convolution":
            weight, transposed, groups = args[1], args[6], args[8]
            # A transposed convolution tries every tap of its window.
            terms = math.prod(weight.shape[1:]) if not transposed else weight.shape[0] // groups * weight[0, 0].numel()
        elif name in ("mm", "bmm"):
            terms = args[0].shape[-1]
        elif name in ("addmm", "baddbmm"):
            terms = args[1].shape[-1]
        elif "attention" in name:
            terms = 2 * args[1].shape[-2]
        elif "pool" in name and len(args) > 1 and isinstance(args[1], (list, tuple)):
            terms = math.prod(args[1])
        self.count += max([result.numel() * terms, *(t.numel() for t in tensors)])
        return out


def work(make, values):
    """The work of a forward pass with these numbers, None where the module does not take them or cannot be counted."""
    try:
        file = make(values)
        with torch.device("meta"):
            model = file.made()
            inputs = file.inputs()
            with Work() as counted:
                out = model(*inputs)
        out = out if isinstance(out, (tuple, list)) else [out]
        if any(isinstance(x, torch.Tensor) and x.numel() == 0 for x in [*inputs, *out]):
            return None
        return counted.count + sum(x.numel() for x in inputs if isinstance(x, torch.Tensor))
    except Exception:
        return None


def turn(name, value):
    """When a number is cut: batches first, then what is large; None where it is small."""
    # A setting of a task is called `input.batch_size`.
    name = name.rpartition(".")[2]
    if FIXED.search(name):
        return 2.5 if value > FEW else None
    if BATCH.search(name):
        return 0 if value > 2 else None
    for round_, least in enumerate(LEAST):
        if value > least:
            return 2 * round_ + (2 if INNER.search(name) else 1)
    return None


def shrunk(make, found, overrides, most):
    """Numbers by element at which the work is at most `most`, or as near as cuts lead, and that work; `found` are the
    numbers that there are, before any is cut. `make` gives the file with some values."""
    values = dict(overrides)
    total = work(make, values)
    if total is None:
        return values, None
    stuck = set()
    for _ in range(STEPS):
        if total <= most:
            break
        now = {name: values.get(name, value) for name, value in found.items()}
        groups = {}
        for name, value in now.items():
            when = turn(name, value)
            if when is not None:
                groups.setdefault((when, -value), []).append(name)
        tried = [(key, names) for key, names in sorted(groups.items()) if (key, tuple(names)) not in stuck]
        if not tried:
            # Two that the module ties to each other, whatever they are.
            order = [name for _, names in sorted(groups.items()) for name in names]
            for pair in itertools.combinations(order, 2):
                less = {**values, **{name: -(-now[name] // 2) for name in pair}}
                cut = work(make, less)
                if cut is not None and cut < total:
                    values, total = less, cut
                    stuck.clear()
                    break
            else:
                break
            continue
        key, names = tried[0]
        less = {**values, **{name: -(-now[name] // 2) for name in names}}
        cut = work(make, less)
        if cut is None or cut >= total:
            # Together they cannot be cut; one by one they may.
            stuck.add((key, tuple(names)))
            for name in names if len(names) > 1 else []:
                less = {**values, name: -(-now[name] // 2)}
                cut = work(make, less)
                if cut is not None and cut < total:
                    values, total = less, cut
                    break
            continue
        values, total = less, cut
    return values, total
