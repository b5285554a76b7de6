"""The worker that holds the other side of a judgement: a problem file's inputs, init arguments and reference.

The protocol is `docs/submission-worker.md` (version 1), the framing `worker_protocol.py`. It runs problem files, which
are the user's own, and never a line of a submission.

A *setting* of a problem is what its file computes with other numbers for its module-level names (`extents`) and with
other init arguments (`init`, by position). Seeds are those of KernelBench's `eval.py`: the seed before the init
arguments and again before the model, that of a trial before its inputs and again before the forward pass.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import math
import mmap
import platform

from file_numbers import Numbers, used_inside
from worker_protocol import TORCH_MISSING, Fault, Raised, Server, Stage, describe, field, main

if TORCH_MISSING is None:
    import torch
    from on_cpu import OnCpu
    from submission_tensors import Codec, Full, Strange
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten
    from torch.utils.flop_counter import flop_registry

VERSION = 1
SEED = 42
PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
# Settings that are kept: what is asked of the next submission is mostly what was asked of the last.
KEPT = 6


class Cost(TorchDispatchMode):
    """What a forward pass asks for: floating-point operations of products and convolutions, and elements of results."""

    def __init__(self):
        super().__init__()
        self.flops, self.elements = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        if packet in flop_registry:
            self.flops += flop_registry[packet](*args, **(kwargs or {}), out_val=out)
        for t in tree_flatten(out)[0]:
            if isinstance(t, torch.Tensor):
                self.elements += t.numel()
        return out


class Problem:
    """A problem file, read and not yet run."""

    def __init__(self, path):
        try:
            with open(path, encoding="utf-8") as f:
                self.source = f.read()
        except (OSError, UnicodeDecodeError) as e:
            raise Fault(f"cannot read `{path}`: {e}") from e
        self.path = path
        self.sha256 = hashlib.sha256(self.source.encode()).hexdigest()
        with Stage("load"):
            self.file = Numbers(self.source, path)
            # A submission has its own copy of what the file's classes and functions use by themselves.
            fixed = used_inside(self.source, path)
        self.numbers = {n: size for n, size in self.file.written.items() if n in self.file.names and n not in fixed}

    def context(self, extents):
        with Stage("load"):
            return self.file.run(extents)[0]


class Setting:
    """A problem at one setting, with its model."""

    def __init__(self, problem, extents, init, precision, keep_integers):
        self.dtype = getattr(torch, PRECISIONS[precision])
        self.keep_integers = keep_integers
        context = problem.context(extents)
        self.get_inputs = context["get_inputs"]
        with Stage("model"), torch.no_grad():
            torch.manual_seed(SEED)
            self.init = [self.cast(x) for x in context["get_init_inputs"]()]
            self.given = len(self.init)
            self.defaults = self.defaulted(context["Model"])
            for position, value in sorted(init.items(), key=lambda p: int(p[0])):
                at = int(position)
                while len(self.init) <= at:
                    self.init.append(self.defaults[len(self.init)])
                plain = isinstance(self.init[at], (int, float, tuple))
                self.init[at] = type(self.init[at])(value) if plain else value
            torch.manual_seed(SEED)
            self.model = context["Model"](*copy.deepcopy(self.init))
            self.model = self.model.to(dtype=self.dtype)
        self.state = copy.deepcopy(self.model.state_dict())
        self.exact = None

    @staticmethod
    def defaulted(kind):
        """The defaults of a model's init arguments, by position; a gap where one has none."""
        try:
            listed = list(inspect.signature(kind.__init__).parameters.values())[1:]
        except (TypeError, ValueError):
            return []
        return [p.default for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def cast(self, x):
        """As the benchmark's harness casts: every tensor, or as an earlier one did: floating-point ones."""
        if not isinstance(x, torch.Tensor) or (self.keep_integers and not x.is_floating_point()):
            return x
        return x.to(dtype=self.dtype)

    def inputs(self, seed):
        with Stage("inputs"):
            torch.manual_seed(seed)
            return [self.cast(x) for x in self.get_inputs()]

    def output(self, inputs, seed, exact):
        """The reference's output, in its own precision or float64; inputs it wrote to; whether it gave one back."""
        if exact and self.exact is None:
            self.exact = copy.deepcopy(self.model)
            self.exact.load_state_dict(self.state)
            self.exact = self.exact.double()
        model = self.exact if exact else self.model
        given = [x.double() if exact and isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
        kept = [x.clone() if isinstance(x, torch.Tensor) else x for x in given]
        default = torch.get_default_dtype()
        with Stage("truth" if exact else "forward"), torch.no_grad():
            torch.manual_seed(seed)
            torch.set_default_dtype(torch.float64 if exact else torch.float32)
            try:
                out = model(*given)
            finally:
                torch.set_default_dtype(default)
                model.load_state_dict(dict(self.state.items()))
        flat = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor)]
        places = {x.untyped_storage().data_ptr() for x in given if isinstance(x, torch.Tensor) and x.numel()}
        modified = [
            i
            for i, (x, k) in enumerate(zip(given, kept))
            if isinstance(x, torch.Tensor) and not torch.equal(torch.nan_to_num(x), torch.nan_to_num(k))
        ]
        aliases = any(t.untyped_storage().data_ptr() in places for t in flat if t.numel())
        return out, modified, aliases


class Worker(Server):
    requests = ("hello", "problem", "cost", "setting", "inputs", "output")

    def hello(self, request):
        self.check_version(request, VERSION)
        exchange = {"type": "hello", **field(request, "exchange", (dict,))}
        with open(field(exchange, "path", (str,)), "r+b") as f:
            self.codec = Codec(mmap.mmap(f.fileno(), field(exchange, "bytes", (int,))), self.dtypes)
        torch.set_num_threads(max(1, field(request, "threads", (int,), 1)))
        torch.set_grad_enabled(False)
        self.problems, self.settings = {}, {}
        self.mode = OnCpu()
        self.mode.__enter__()
        # The first time that shapes run alone, half of PyTorch is imported: now, not while someone waits.
        with torch.device("meta"), Cost():
            torch.nn.Linear(2, 2)(torch.ones(2, 2))
        self.ready = True
        return {
            "type": "ready",
            "environment": {
                "torch": torch.__version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
            },
        }

    def problem(self, request):
        path = field(request, "path", (str,))
        problem = self.problems[path] = Problem(path)
        return {"type": "problem", "sha256": problem.sha256, "numbers": problem.numbers}

    def cost(self, request):
        """What a forward pass at some extents asks for, without computing it: shapes alone run (device `meta`)."""
        problem = self.loaded(request)
        with Stage("cost"), torch.no_grad(), torch.device("meta"):
            context = problem.context(field(request, "extents", (dict,)))
            model = context["Model"](*context["get_init_inputs"]())
            inputs = context["get_inputs"]()
            with Cost() as cost:
                out = model(*inputs)
        size = lambda values: sum(t.numel() for t in tree_flatten(values)[0] if isinstance(t, torch.Tensor))  # noqa: E731
        return {
            "type": "cost",
            "flops": cost.flops,
            "elements": cost.elements,
            "inputs": size(inputs),
            "outputs": size(out),
            "parameters": sum(p.numel() for p in model.parameters()),
            "integers": sum(isinstance(x, torch.Tensor) and not x.is_floating_point() for x in tree_flatten(inputs)[0]),
        }

    def loaded(self, request):
        path = field(request, "path", (str,))
        if path not in self.problems:
            raise Fault(f"the problem `{path}` is not loaded")
        return self.problems[path]

    def chosen(self, request):
        problem = self.loaded(request)
        extents, init = field(request, "extents", (dict,)), field(request, "init", (dict,))
        precision = field(request, "precision", (str,))
        keep = bool(request.get("keep_integers"))
        key = (problem.path, problem.sha256, repr(sorted(extents.items())), repr(sorted(init.items())), precision, keep)
        setting = self.settings.pop(key, None) or Setting(problem, extents, init, precision, keep)
        self.settings[key] = setting
        while len(self.settings) > KEPT:
            self.settings.pop(next(iter(self.settings)))
        return setting

    def setting(self, request):
        setting = self.chosen(request)
        packer = self.codec.packer()
        with Stage("setting"):
            listed = [
                [name, list(p.shape), finite(p.detach().double().sum().item())]
                for name, p in list(setting.model.named_parameters())[:4096]
            ]
            try:
                init = [packer.value(x) for x in setting.init]
            except Strange as e:
                raise Fault(f"an init argument of the problem is {e}") from e
        names = [number(d) for d in setting.defaults]
        return {
            "type": "setting",
            "init": init,
            "storages": packer.storages,
            "parameters": listed,
            "given": setting.given,
            "defaults": names,
        }

    def inputs(self, request):
        setting = self.chosen(request)
        trial, draw = request.get("trial"), request.get("draw")
        if trial is not None:
            torch.manual_seed(SEED)
            seed = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(trial + 1)][trial]
        else:
            seed = draw
        packer = self.codec.packer()
        with Stage("inputs"):
            values = [packer.value(x) for x in setting.inputs(seed)]
        return {"type": "inputs", "seed": seed, "values": values, "storages": packer.storages}

    def output(self, request):
        setting = self.chosen(request)
        storages = self.codec.storages(request)
        inputs = [self.codec.value(v, storages) for v in field(request, "inputs", (list,))]
        exact = bool(request.get("exact"))
        if request.get("perturb"):
            inputs = [perturbed(x, request["perturb"]) for x in inputs]
        out, modified, aliases = setting.output(inputs, field(request, "seed", (int,)), exact)
        packer = self.codec.packer()
        with Stage("result"):
            flat = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor)]
            if not flat:
                raise Raised("result", f"the model gives a {type(out).__name__}, which holds no tensor")
            value = {"list": [packer.value(t.contiguous()) for t in flat]}
        return {
            "type": "output",
            "value": value,
            "storages": packer.storages,
            "modified": modified,
            "aliases": aliases,
        }

    def answer(self, request):
        try:
            return super().answer(request)
        except Full as e:
            raise Raised("exchange", str(e)) from e
        except (MemoryError, RecursionError) as e:
            raise Raised("allocate", describe(e)) from e


def perturbed(x, relative):
    """Each element moved by that part of itself, up or down."""
    if not (isinstance(x, torch.Tensor) and x.is_floating_point()):
        return x
    generator = torch.Generator().manual_seed(7)
    sign = torch.randint(0, 2, x.shape, generator=generator, dtype=x.dtype) * 2 - 1
    return x * (1 + sign * relative)


def number(value):
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def finite(x):
    return x if math.isfinite(x) else str(x)


if __name__ == "__main__":
    main(Worker)
