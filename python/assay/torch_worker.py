"""The PyTorch worker of `assay verify-ops` and of everything that reads problem files: PyTorch on the CPU, as it is.

The protocol is `docs/torch-worker.md` (version 1), the framing `worker_protocol.py`. The worker makes no values and
judges nothing: it executes a reference program by PyTorch's own functions and gives back what they gave.

What it makes sure of: one thread count for the whole run, no gradient, the default dtype is the precision asked for,
and every tensor lies in memory exactly as the request says (its strides, its first element, what surrounds it).
"""

from __future__ import annotations

import platform

from worker_protocol import MESSAGE_BYTES, TORCH_MISSING, Fault, Raised, Server, Stage, describe, field, main

if TORCH_MISSING is None:
    import torch

VERSION = 1
PRECISIONS = {"f64": "float64", "f32": "float32"}

# The reference language's names where PyTorch spells them as methods; everything else is found by its own name, in
# `torch.nn.functional` first, because what is in both means the same there.
METHODS = {
    "view": lambda x, size: x.view(size),
    "expand": lambda x, size: x.expand(size),
    "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "einsum": lambda equation, operands: torch.einsum(equation, *operands),
}


def function(name):
    """PyTorch's function of that name, None where it has none."""
    if name in METHODS:
        return METHODS[name]
    for module in (torch.nn.functional, torch):
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


class Scope(dict):
    """The names of a program: its own first, then PyTorch's functions. Nothing else, no builtins."""

    def __missing__(self, name):
        found = function(name)
        if found is None:
            raise NameError(f"PyTorch has no function `{name}`")
        return found


class Worker(Server):
    requests = ("hello", "evaluate")

    def hello(self, request):
        self.check_version(request, VERSION)
        self.open_exchange(field(request, "exchange", (dict,)))
        torch.set_num_threads(max(1, field(request, "threads", (int,), 1)))
        torch.set_grad_enabled(False)
        self.ready = True
        return {
            "type": "ready",
            "environment": {
                "torch": torch.__version__,
                "torch_git": torch.version.git_version,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "threads": torch.get_num_threads(),
            },
        }

    def evaluate(self, request):
        text = field(request, "program", (str,))
        wanted = field(request, "outputs", (list,))
        precision = self.precision(request)
        try:
            program = compile(text, "<reference>", "exec")
        except (SyntaxError, ValueError) as e:
            raise Fault(f"the program is not one: {e}") from e
        scope = Scope({"inf": float("inf"), "nan": float("nan")})
        scope.update(field(request, "scalars", (dict,)))
        for tensor in field(request, "tensors", (list,)):
            name, value = self.operand(tensor, precision)
            scope[name] = value
        torch.set_default_dtype(precision)
        with Stage("forward"):
            exec(program, {"__builtins__": {}}, scope)
        missing = [n for n in wanted if n not in scope]
        if missing:
            raise Fault(f"the program defines no {missing}")
        return {"type": "evaluated", "outputs": self.give([(n, scope[n]) for n in wanted])}

    # The parts of it.

    def precision(self, request):
        name = field(request, "precision", (str,))
        if name not in PRECISIONS:
            raise Fault(f"the precision `{name}`, which is neither f64 nor f32")
        return getattr(torch, PRECISIONS[name])

    def operand(self, tensor, precision):
        """A tensor of the request: its storage converted to the precision where it is floating-point, then the view."""
        if not isinstance(tensor, dict):
            raise Fault(f"a tensor is not an object: {tensor!r}"[:MESSAGE_BYTES])
        tensor = {"type": "tensor", **tensor}
        name, dtype = field(tensor, "name", (str,)), field(tensor, "dtype", (str,))
        if dtype not in self.dtypes:
            raise Fault(f"the tensor `{name}` has the dtype `{dtype}`")
        offset, count, start = (field(tensor, n, (int,)) for n in ("offset", "count", "start"))
        shape, strides = field(tensor, "shape", (list,)), field(tensor, "strides", (list,))
        if min([offset, count, start, *shape, *strides]) < 0 or len(shape) != len(strides):
            raise Fault(f"the tensor `{name}` has the shape {shape}, the strides {strides} and the start {start}")
        try:
            storage = self.window(self.dtypes[dtype], [count], offset).clone()
            if storage.is_floating_point():
                storage = storage.to(precision)
            return name, storage.as_strided(shape, strides, start)
        except RuntimeError as e:
            raise Fault(f"the tensor `{name}` does not fit its storage: {describe(e)}") from e

    def give(self, results):
        """Writes results to the exchange, one after another; each is a tensor."""
        at, listed = 0, []
        for name, value in results:
            if not isinstance(value, torch.Tensor):
                raise Raised("result", f"`{name}` is of type {type(value).__name__}, no tensor")
            if value.dtype not in self.names:
                raise Raised("result", f"`{name}` has the dtype {value.dtype}, which the exchange does not carry")
            size = value.element_size()
            at = -(-at // size) * size
            self.window(value.dtype, list(value.shape), at).copy_(value)
            listed.append({"name": name, "dtype": self.dtype_name(value), "shape": list(value.shape), "offset": at})
            at += value.numel() * size
        return listed


if __name__ == "__main__":
    main(Worker)
