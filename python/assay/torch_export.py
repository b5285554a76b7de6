"""A module as a graph of ATen operators, with the values that belong to it.

These are the worker's requests `export`, `reveal` and `values` (`docs/torch-worker.md`).

The graph is `torch.export`'s of the module in training mode, as it stands (composite operators whole, so that their
nodes are few and named as people call them), or decomposed to the core operators. How tensors were drawn is watched
while the module and its inputs are made again from the same seeds, and written in the catalogue's words for
initialisers; what was not drawn in a way that has such words is fitted to its values, and said to be.
"""

from __future__ import annotations

import copy
import math

from benchmark_file import flat
from worker_protocol import TORCH_MISSING, Fault, Raised, Stage, dtypes

if TORCH_MISSING is None:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
else:
    TorchDispatchMode = object

# Elements from which the words for a tensor are fitted.
FITTED = 1 << 16
# The random operators that a forward pass may call; what they give is an input of the exported program.
RANDOM = ("bernoulli_", "bernoulli", "native_dropout", "rand", "randn", "rand_like", "randn_like")


def overload(func):
    """The name of an ATen operator without namespace and overload."""
    return str(getattr(func, "name", lambda: func)()).replace("aten::", "").split(".")[0]


class Words:
    """How a tensor was drawn: uniform or normal numbers times and plus constants, in the catalogue's words."""

    def __init__(self, kind, a=0.0, b=1.0, factor=False, softmax=False, structure=None):
        self.kind, self.a, self.b = kind, a, b
        self.factor, self.softmax, self.structure = factor, softmax, structure

    def but(self, **changes):
        new = copy.copy(self)
        new.__dict__.update(changes)
        return new

    def affine(self, scale, shift):
        """These numbers times `scale` plus `shift`, None where no word says it."""
        if self.softmax or (self.factor and shift != 0):
            return None
        if self.kind == "uniform":
            ends = sorted((self.a * scale + shift, self.b * scale + shift))
            return self.but(a=ends[0], b=ends[1])
        if self.kind == "normal":
            return self.but(a=self.a * scale + shift, b=abs(self.b * scale))
        if self.kind == "full":
            return self.but(a=self.a * scale + shift)
        if self.kind == "randint" and (self.a, self.b) == (0, 2) and (scale, shift) == (2, 0):
            return self.but(kind="twice")
        if self.kind == "twice" and (scale, shift) == (1, -1):
            return self.but(kind="sign")
        return self if (scale, shift) == (1, 0) else None

    def text(self):
        def number(x):
            return repr(float(x)) if not float(x).is_integer() or abs(x) > 2**53 else str(int(x))

        a, b = number(self.a), number(self.b)
        plain = {
            "uniform": "rand" if (self.a, self.b) == (0, 1) else f"uniform({a}, {b})",
            "normal": "randn" if (self.a, self.b) == (0, 1) else f"normal({a}, {b})",
            "full": {0: "zeros", 1: "ones"}.get(self.a, f"full({a})"),
            "randint": f"randint({a}, {b})",
            "bernoulli": f"bernoulli({a})",
            "sign": "sign",
        }.get(self.kind)
        if plain is None:
            return None
        plain = f"factor({plain})" if self.factor else plain
        return f"softmax({plain})" if self.softmax else plain


class Drawn(TorchDispatchMode):
    """Watches tensors being drawn, by their storage."""

    def __init__(self):
        super().__init__()
        self.known = {}

    def words(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            return None
        found = self.known.get(tensor.untyped_storage().data_ptr())
        # A part of a tensor is drawn as the whole; a view of other elements is not told apart.
        return found[1] if found else None

    def note(self, tensor, words):
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            storage = tensor.untyped_storage()
            # Kept alive, so that its address stays its own.
            self.known[storage.data_ptr()] = (storage, words)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = overload(func)
        before = self.words(args[0]) if args else None
        out = func(*args, **kwargs)
        if isinstance(out, torch.Tensor):
            words = self.after(name, args, kwargs, before)
            shares = args and isinstance(args[0], torch.Tensor) and name[-1] != "_"
            if shares and out.untyped_storage().data_ptr() == args[0].untyped_storage().data_ptr():
                return out
            self.note(out, words)
        return out

    def after(self, name, args, kwargs, before):
        def number(i, key, default):
            value = args[i] if len(args) > i else kwargs.get(key, default)
            return value if isinstance(value, (int, float)) else None

        if name in ("rand", "rand_like"):
            return Words("uniform", 0, 1)
        if name in ("randn", "randn_like"):
            return Words("normal", 0, 1)
        if name in ("zeros", "zeros_like", "zero_", "new_zeros"):
            return Words("full", 0)
        if name in ("ones", "ones_like", "new_ones"):
            return Words("full", 1)
        if name in ("full", "full_like", "fill_", "fill"):
            value = number(1, "fill_value", None)
            return None if value is None else Words("full", value)
        if name == "uniform_":
            return Words("uniform", number(1, "from", 0.0), number(2, "to", 1.0))
        if name == "normal_":
            return Words("normal", number(1, "mean", 0.0), number(2, "std", 1.0))
        if name == "bernoulli_" and number(1, "p", 0.5) is not None:
            return Words("bernoulli", number(1, "p", 0.5))
        if name == "randint":
            ends = [x for x in args[:2] if isinstance(x, int)]
            return Words("randint", *([0, *ends] if len(ends) == 1 else ends)) if ends else None
        if before is None and not (name in ("mul", "add") and len(args) > 1):
            return None
        if name in ("_to_copy", "clone", "copy", "detach", "alias", "view", "_unsafe_view", "contiguous", "expand"):
            return before
        if name == "copy_":
            return self.words(args[1])
        if name in ("mul", "mul_", "div", "div_", "add", "add_", "sub", "sub_", "rsub"):
            return self.arithmetic(name.rstrip("_"), args, kwargs, before)
        if name == "neg":
            return before.affine(-1, 0)
        if name == "_softmax" and args[1] in (-1, args[0].dim() - 1) and before.structure is None:
            return before.but(softmax=True) if before.kind in ("uniform", "normal") else None
        if name in ("triu", "tril") and number(1, "diagonal", 0) == 0 and before.structure is None:
            return before.but(structure="upper" if name == "triu" else "lower")
        return None

    def arithmetic(self, name, args, kwargs, before):
        x, y = args[0], args[1]
        other = self.words(y)
        if kwargs.get("alpha", 1) != 1:
            return None
        if name == "mul" and isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            # A whole tensor times one number of its own, uniform in [0, 1).
            for whole, one, words, single in ((x, y, before, other), (y, x, other, before)):
                unit = single is not None and (single.kind, single.a, single.b) == ("uniform", 0, 1)
                if one.numel() == 1 and whole.numel() > 1 and words is not None and unit and not words.factor:
                    return words.but(factor=True) if words.kind in ("uniform", "normal") else None
        # (A + A^T) / 2 of a square matrix.
        if name == "add" and isinstance(y, torch.Tensor) and before is not None and other is before and x.dim() >= 2:
            same = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
            if same and x.shape == y.shape and x.stride() != y.stride():
                return before.but(structure="halves of symmetric")
            return None
        if isinstance(y, torch.Tensor):
            if y.numel() != 1 or other is None or other.kind != "full":
                return None
            y = other.a
        if before is None or not isinstance(y, (int, float)):
            return None
        if before.structure is not None:
            return before.but(structure="symmetric") if (name, y) == ("div", 2) else None
        return {
            "mul": lambda: before.affine(y, 0),
            "div": lambda: before.affine(1 / y, 0) if y else None,
            "add": lambda: before.affine(1, y),
            "sub": lambda: before.affine(1, -y),
            "rsub": lambda: before.affine(-1, y),
        }[name]()


def fitted(tensor):
    """Words that fit the values of a tensor."""
    if tensor.numel() == 0:
        return "zeros"
    x = tensor.detach().reshape(-1)[:FITTED].double()
    low, high = x.min().item(), x.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if low == high:
        return Words("full", low).text()
    if not tensor.is_floating_point():
        return f"randint({int(low)}, {int(high) + 1})"
    mean, std = x.mean().item(), x.std(correction=0).item()
    kurtosis = ((x - mean) ** 4).mean().item() / std**4
    # 1.8 is that of uniform numbers, 3 of normal ones.
    if kurtosis < 2.4:
        return Words("uniform", low, high).text()
    return Words("normal", mean, std).text()


def described(tensor, words):
    """Words and structure for a tensor, and whether they were fitted."""
    text = words.text() if words is not None and words.structure != "halves of symmetric" else None
    if text is not None:
        return {"init": text, "structure": words.structure, "fitted": False}
    return {"init": fitted(tensor), "structure": None, "fitted": True}


class Recorder(TorchDispatchMode):
    """Keeps what random operators give, or gives what another recorder kept."""

    def __init__(self, replay=None):
        super().__init__()
        self.kept, self.replay = [], replay
        # Which of them are masks of a dropout.
        self.masks = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if overload(func) not in RANDOM:
            return out
        which = out[1] if isinstance(out, tuple) else out
        at = len(self.kept)
        if self.replay is not None and at < len(self.replay):
            if isinstance(out, tuple):
                mask, p = self.replay[at], args[1]
                out = (args[0] * mask.to(args[0].dtype) / (1 - p), mask.to(out[1].dtype))
            else:
                out.copy_(self.replay[at])
        self.kept.append(which.clone())
        self.masks.append(overload(func) in ("bernoulli_", "bernoulli", "native_dropout"))
        return out


class Exported:
    """A problem's module as a graph, and the values of its tensors."""

    def __init__(self, problem):
        self.problem = problem
        self.values = {}

    def export(self, trial, decompose):
        """The graph as JSON's objects."""
        problem = self.problem
        seed = problem.seeds[trial]
        with Stage("inputs"):
            torch.manual_seed(seed)
            made = list(problem.get_inputs())
        model = copy.deepcopy(problem.model)
        model.load_state_dict(problem.before if hasattr(problem, "before") else problem.model.state_dict())
        # The official check casts integers too, and some modules then refuse; they are exported on the integers.
        whole = any(isinstance(x, torch.Tensor) and not x.is_floating_point() for x in made)
        whole = whole and problem.casts_integers
        for self.cast_integers in (True, False) if whole else (True,):
            inputs = [self.cast(x) for x in made]
            try:
                with Stage("export"):
                    torch.manual_seed(seed)
                    program = torch.export.export(model, tuple(inputs), strict=False)
                    if decompose:
                        program = program.run_decompositions()
                break
            except Raised:
                if not (whole and self.cast_integers):
                    raise
        self.program, self.inputs = program, inputs
        drawn, drawn_inputs = self.drawn(seed)
        names = {tensor_dtype: name for name, tensor_dtype in dtypes().items()}
        graph = {"inputs": [], "parameters": [], "buffers": [], "constants": [], "nodes": [], "outputs": []}
        graph["cast_integers"] = self.cast_integers
        self.names = names
        self.values = {}
        order = iter(range(len(inputs)))
        kinds = torch.export.graph_signature.InputKind
        for spec in program.graph_signature.input_specs:
            name = spec.arg.name
            if spec.kind == kinds.USER_INPUT:
                at = next(order)
                if isinstance(inputs[at], torch.Tensor):
                    words = described(inputs[at], drawn_inputs[at])
                    # The n-th of those that are tensors.
                    target = f"input:{len(graph['inputs'])}"
                    graph["inputs"].append(self.tensor(name, target, inputs[at], words))
                continue
            if spec.kind == kinds.PARAMETER:
                tensor = program.state_dict[spec.target]
                words = described(tensor, drawn.get(spec.target))
                graph["parameters"].append(self.tensor(name, f"parameter:{spec.target}", tensor, words))
            elif spec.kind == kinds.BUFFER:
                held = program.state_dict if spec.persistent else program.constants
                tensor = held[spec.target]
                words = described(tensor, drawn.get(spec.target))
                graph["buffers"].append(self.tensor(name, f"buffer:{spec.target}", tensor, words))
            elif spec.kind == kinds.CONSTANT_TENSOR:
                tensor = program.constants[spec.target]
                words = described(tensor, None)
                graph["constants"].append(self.tensor(name, f"constant:{spec.target}", tensor, words))
            else:
                raise Raised("export", f"an input of the kind {spec.kind.name}")
        for node in program.graph.nodes:
            if node.op == "call_function":
                graph["nodes"].append(self.node(node))
            elif node.op == "output":
                # Buffers that are written come first in a functional graph.
                kind = torch.export.graph_signature.OutputKind.USER_OUTPUT
                for spec in program.graph_signature.output_specs:
                    if spec.kind == kind:
                        value = getattr(spec.arg, "name", None)
                        graph["outputs"].append({"node": value} if value else {"value": str(spec.arg)})
            elif node.op != "placeholder":
                raise Raised("export", f"a node `{node.name}` of the kind {node.op}")
        return graph

    def cast(self, x, dtype=None):
        """An input in the precision, as the official check casts it; integers where that can be."""
        integer = isinstance(x, torch.Tensor) and not x.is_floating_point()
        return x if integer and not self.cast_integers else self.problem.cast(x, dtype)

    def drawn(self, seed):
        """How parameters and inputs were drawn: the module and its inputs made again while they are watched. It is no
        fault of the module where that cannot be done."""
        problem = self.problem
        by_name, by_input = {}, [None] * len(self.inputs)
        try:
            with Drawn() as watch:
                torch.manual_seed(problem.model_seed)
                model = problem.make()
            for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
                by_name[name] = watch.words(tensor)
        except Exception:
            by_name = {}
        try:
            with Drawn() as watch:
                torch.manual_seed(seed)
                inputs = list(problem.get_inputs())
            for i, tensor in enumerate(inputs):
                by_input[i] = watch.words(tensor)
        except Exception:
            by_input = [None] * len(self.inputs)
        return by_name, by_input

    def tensor(self, name, target, tensor, words):
        self.values[target] = tensor
        one = tensor.item() if tensor.numel() == 1 and tensor.dim() == 0 else None
        if isinstance(one, float) and not math.isfinite(one):
            one = None
        return {
            "name": name,
            "target": target,
            "dtype": self.dtype(tensor.dtype),
            "shape": list(tensor.shape),
            "value": one,
            **words,
        }

    def dtype(self, dtype):
        return self.names.get(dtype, str(dtype).replace("torch.", ""))

    def node(self, node):
        value = node.meta.get("val")
        outputs = value if isinstance(value, (tuple, list)) else [value]
        metas = []
        for one in outputs:
            if isinstance(one, torch.Tensor):
                metas.append({"dtype": self.dtype(one.dtype), "shape": [int(n) for n in one.shape]})
                metas[-1]["strides"] = [int(n) for n in one.stride()]
            else:
                metas.append(None)
        target = node.target
        name = "getitem" if getattr(target, "__name__", "") == "getitem" else str(target)
        return {
            "name": node.name,
            "op": name,
            "args": [self.argument(a) for a in node.args],
            "kwargs": {k: self.argument(a) for k, a in node.kwargs.items()},
            "outputs": metas,
        }

    def argument(self, a):
        if isinstance(a, torch.fx.Node):
            return {"node": a.name}
        if isinstance(a, bool) or a is None or isinstance(a, str):
            return a if not isinstance(a, str) else {"text": a}
        if isinstance(a, int):
            return a
        if isinstance(a, float):
            return a if math.isfinite(a) else {"float": repr(a)}
        if isinstance(a, (list, tuple)):
            return [self.argument(x) for x in a]
        if isinstance(a, torch.dtype):
            return {"dtype": self.dtype(a)}
        if isinstance(a, (torch.device, torch.layout, torch.memory_format)):
            return {"other": str(a)}
        raise Raised("export", f"an argument of the type {type(a).__name__}")

    def reveal(self, trial):
        """Runs the module once more in float32 and in float64 on the trial's inputs, with the same random numbers, and
        keeps what it gives and what it drew."""
        problem = self.problem
        seed = problem.seeds[trial]
        state = problem.before if hasattr(problem, "before") else problem.model.state_dict()
        results = []
        for dtype, stage in ((torch.float32, "forward"), (torch.float64, "truth")):
            model = copy.deepcopy(problem.model)
            model.load_state_dict(state)
            model = model.to(dtype)
            inputs = [self.cast(x.clone() if isinstance(x, torch.Tensor) else x, dtype) for x in self.inputs]
            replay = results[0][1] if results else None
            torch.set_default_dtype(dtype)
            try:
                with Stage(stage), Recorder(replay) as recorder:
                    torch.manual_seed(seed)
                    out = model(*inputs)
            finally:
                torch.set_default_dtype(torch.float32)
            outputs = flat(out)
            for i, one in enumerate(outputs):
                self.values[f"{'output' if dtype == torch.float32 else 'truth'}:{i}"] = one
            results.append((outputs, recorder.kept, recorder.masks))
        for i, (one, mask) in enumerate(zip(*results[0][1:])):
            self.values[f"random:{i}"] = one.bool() if mask else one
        return {"outputs": len(results[0][0]), "random": len(results[0][1])}

    def pick(self, names):
        """Tensors by their targets."""
        missing = [n for n in names if n not in self.values]
        if missing:
            raise Fault(f"there is no tensor {missing}")
        return [(n, self.values[n].detach()) for n in names]
