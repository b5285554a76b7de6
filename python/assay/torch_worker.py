"""The PyTorch worker of `assay verify-ops`, `assay blindspots` and `assay audit --kernelbench`: PyTorch on the CPU.

The protocol is `docs/torch-worker.md` (version 1), the framing `worker_protocol.py`. The worker makes no values and
judges nothing: it executes a reference program by PyTorch's own functions and gives back what they gave.

What it makes sure of: one thread count for the whole run, no gradient, the default dtype is the precision asked for,
and every tensor lies in memory exactly as the request says (its strides, its first element, what surrounds it).
"""

from __future__ import annotations

import copy
import math
import platform

from benchmark_file import FileRequests, cast, load
from torch_export import Exported
from torch_extents import shrunk
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


# Functions of one tensor that problems of the benchmark ask for, tried as answers to other problems.
FUNCTIONS = {
    "relu": lambda x: torch.relu(x),
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x),
    "sigmoid": lambda x: torch.sigmoid(x),
    "tanh": lambda x: torch.tanh(x),
    "softmax": lambda x: torch.softmax(x, dim=min(1, x.dim() - 1)),
    "log_softmax": lambda x: torch.log_softmax(x, dim=min(1, x.dim() - 1)),
    "swish": lambda x: x * torch.sigmoid(x),
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "selu": lambda x: torch.selu(x),
    "hardsigmoid": lambda x: torch.nn.functional.hardsigmoid(x),
    "softplus": lambda x: torch.nn.functional.softplus(x),
    "softsign": lambda x: torch.nn.functional.softsign(x),
    "elu": lambda x: torch.nn.functional.elu(x),
    "hardtanh": lambda x: torch.nn.functional.hardtanh(x),
    "negation": lambda x: -x,
}
# Elements that are compared at a time in float64.
CHUNK = 1 << 22
# Elements that are compared before the rest.
SCREEN = 1 << 16


class Problem:
    """A file with `Model`, `get_inputs` and `get_init_inputs`, run as KernelBench's `eval.py` runs it, on the CPU; or a
    task of robust-kbench, whose weights are drawn with the trial's seed: those of the first are kept for all.

    That is: the seed before the init inputs, again before the model; every input cast to the precision, integers too;
    the module in training mode; the seeds of the trials drawn from the seed; a trial's seed before its inputs and again
    before the forward pass; no gradient.
    """

    def __init__(self, path, overrides, seed, trials):
        torch.manual_seed(seed)
        self.seeds = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(trials)]
        file, self.sha256 = load(path, overrides)
        self.get_inputs, self.make = file.inputs, file.again
        self.casts_integers = file.casts_integers
        with Stage("model"):
            self.model = file.model(seed, self.seeds[0])
        self.model_seed = file.model_seed(seed, self.seeds[0])

    def cast(self, x, dtype=None):
        """An input as the official check casts it."""
        return cast(x, dtype or torch.float32, self.casts_integers)

    def trial(self, number):
        seed = self.seeds[number]
        with Stage("inputs"):
            torch.manual_seed(seed)
            self.inputs = [self.cast(x) for x in self.get_inputs()]
        # A forward pass that writes to its inputs or keeps a state spoils neither the truth nor the candidates.
        self.before = copy.deepcopy(self.model.state_dict())
        kept = [x.clone() if isinstance(x, torch.Tensor) else x for x in self.inputs]
        self.seed = seed
        with Stage("forward"):
            torch.manual_seed(seed)
            self.output = self.model(*self.inputs)
        self.inputs = kept
        if not isinstance(self.output, torch.Tensor):
            raise Raised("result", f"the model gives a {type(self.output).__name__}, which has no shape to compare")

    def truth(self):
        """The same model in float64 on the same inputs."""
        with Stage("truth"):
            model = copy.deepcopy(self.model)
            model.load_state_dict(self.before)
            model = model.double()
            torch.manual_seed(self.seed)
            # What the forward pass makes by itself is of the default dtype.
            torch.set_default_dtype(torch.float64)
            try:
                return model(*[self.cast(x, torch.float64) for x in self.inputs])
            finally:
                torch.set_default_dtype(torch.float32)

    def candidate(self, request):
        """An answer that computes less than is asked, None where it has no meaning here."""
        kind, shape = field(request, "kind", (str,)), self.output.shape
        if kind == "constant":
            return torch.full(shape, float(field(request, "value", (int, float))), dtype=self.output.dtype)
        tensors = [x for x in self.inputs if isinstance(x, torch.Tensor)]
        index = field(request, "index", (int,), 0)
        if not 0 <= index < len(tensors):
            return None
        x = tensors[index]
        if kind == "input":
            return x.reshape(shape) if x.numel() == self.output.numel() else None
        if kind == "input_mean":
            return torch.full(shape, x.mean().item(), dtype=self.output.dtype)
        if kind == "function":
            name = field(request, "name", (str,))
            if name not in FUNCTIONS:
                raise Fault(f"no function `{name}`")
            if x.shape != shape or x.dim() == 0:
                return None
            return FUNCTIONS[name](x)
        raise Fault(f"no candidate of the kind `{kind}`")


def pieces(*tensors):
    """The same parts of flat tensors, in float64."""
    flat = [t.reshape(-1) for t in tensors]
    for at in range(0, flat[0].numel(), CHUNK):
        yield tuple(t[at : at + CHUNK].double() for t in flat)


def number(x):
    """A float as JSON has it."""
    return x if math.isfinite(x) else str(x)


class Worker(FileRequests, Server):
    requests = (
        "hello",
        "evaluate",
        "problem",
        "trial",
        "accepts",
        "violations",
        "shrink",
        "export",
        "reveal",
        "values",
        "bind",
        "reference",
    )

    def __init__(self):
        super().__init__()
        self.loaded = None
        self.exported = None

    def hello(self, request):
        self.check_version(request, VERSION)
        self.open_exchange(field(request, "exchange", (dict,)))
        torch.set_num_threads(max(1, field(request, "threads", (int,), 1)))
        memory = field(request, "memory", (int, type(None)))
        if memory is not None:
            # So that an allocation fails, with its message, where the system would otherwise end the process.
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
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

    def problem(self, request):
        self.loaded = None
        torch.set_default_dtype(torch.float32)
        overrides = field(request, "overrides", (dict,))
        trials = field(request, "trials", (int,))
        self.loaded = Problem(field(request, "path", (str,)), overrides, field(request, "seed", (int,)), trials)
        parameters = sum(p.numel() for p in self.loaded.model.parameters())
        return {"type": "problem", "sha256": self.loaded.sha256, "parameters": parameters, "seeds": self.loaded.seeds}

    def trial(self, request):
        problem = self.current()
        index = field(request, "trial", (int,))
        if not 0 <= index < len(problem.seeds):
            raise Fault(f"trial {index} of {len(problem.seeds)}")
        problem.trial(index)
        low, high, total, finite = math.inf, -math.inf, 0.0, 0
        for (part,) in pieces(problem.output):
            part = part[torch.isfinite(part)]
            if part.numel():
                low, high = min(low, part.min().item()), max(high, part.max().item())
                total, finite = total + part.sum().item(), finite + part.numel()
        elements = problem.output.numel()
        return {
            "type": "trial",
            "dtype": self.dtype_name(problem.output),
            "shape": list(problem.output.shape),
            "elements": elements,
            "finite": finite,
            "min": number(low),
            "max": number(high),
            "mean": number(total / finite if finite else math.nan),
            "inputs": [
                {"dtype": self.dtype_name(x), "shape": list(x.shape)}
                for x in problem.inputs
                if isinstance(x, torch.Tensor)
            ],
        }

    def accepts(self, request):
        """What the official check, `torch.allclose(output, candidate)`, says to a candidate at each tolerance."""
        problem = self.current(tried=True)
        tolerances = field(request, "tolerances", (list,))
        with Stage("candidate"):
            answer = problem.candidate({"type": "accepts", **field(request, "candidate", (dict,))})
        if answer is None:
            return {"type": "accepts", "accepted": None, "threshold": None}
        output = problem.output
        if tolerances and output.numel() > SCREEN:
            # What is rejected on the first elements is rejected; the threshold is then a lower bound.
            few = (output.reshape(-1)[:SCREEN], answer.reshape(-1)[:SCREEN])
            if not torch.allclose(*few, atol=max(tolerances), rtol=max(tolerances)):
                output, answer = few
        threshold = 0.0
        for ours, theirs in pieces(output, answer):
            off = torch.where(ours == theirs, 0.0, (ours - theirs).abs() / (1 + theirs.abs()))
            worst = off.max().item() if off.numel() else 0.0
            threshold = math.inf if not math.isfinite(worst) else max(threshold, worst)
        accepted = [torch.allclose(output, answer, atol=t, rtol=t) for t in tolerances]
        return {"type": "accepts", "accepted": accepted, "threshold": number(threshold)}

    def violations(self, request):
        """Positions at which the float32 output is not within a tolerance of the same model in float64."""
        problem = self.current(tried=True)
        tolerances = field(request, "tolerances", (list,))
        truth = problem.truth()
        if truth.shape != problem.output.shape:
            raise Raised("truth", f"the shape {list(truth.shape)} instead of {list(problem.output.shape)}")
        counts, threshold = [0] * len(tolerances), 0.0
        for ours, exact in pieces(problem.output, truth):
            off = (ours - exact).abs()
            same = (ours == exact) | (ours.isnan() & exact.isnan())
            for i, t in enumerate(tolerances):
                within = same | ((off <= t + t * exact.abs()) & exact.isfinite() & ours.isfinite())
                counts[i] += int((~within).sum().item())
            worst = torch.where(same, 0.0, off / (1 + exact.abs()))
            worst = worst.max().item() if worst.numel() else 0.0
            threshold = math.inf if not math.isfinite(worst) else max(threshold, worst)
        return {"type": "violations", "counts": counts, "threshold": number(threshold)}

    def shrink(self, request):
        path, overrides = field(request, "path", (str,)), field(request, "overrides", (dict,))
        most = field(request, "work", (int,))
        torch.set_default_dtype(torch.float32)

        def make(values):
            return load(path, values)[0]

        values, work = shrunk(make, make(overrides).free(), overrides, most)
        return {"type": "shrunk", "overrides": values, "work": work}

    def export(self, request):
        self.exported = None
        problem = self.current()
        trial, decompose = field(request, "trial", (int,), 0), field(request, "decompose", (bool,), False)
        if not 0 <= trial < len(problem.seeds):
            raise Fault(f"trial {trial} of {len(problem.seeds)}")
        exported = Exported(problem)
        graph = exported.export(trial, decompose)
        self.exported = exported
        return {"type": "exported", "graph": graph}

    def reveal(self, request):
        if self.exported is None:
            raise Fault("nothing was exported")
        return {"type": "revealed", **self.exported.reveal(field(request, "trial", (int,), 0))}

    def values(self, request):
        if self.exported is None:
            raise Fault("nothing was exported")
        return {"type": "values", "outputs": self.give(self.exported.pick(field(request, "names", (list,))))}

    # The parts of it.

    def current(self, tried=False):
        if self.loaded is None or (tried and not hasattr(self.loaded, "output")):
            raise Fault("no problem is loaded, or none of its trials was run")
        return self.loaded

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
