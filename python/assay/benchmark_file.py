"""A benchmark's problem file as it is: its extents, its module, its inputs, and its answers to inputs from elsewhere.

Two forms are read. KernelBench's has `Model`, `get_inputs` and `get_init_inputs`; robust-kbench's has `Model`,
`get_inputs` with keyword arguments and `config_forward.json` beside the file. Both are executed as their own checks do
it, on the CPU; what is added is a float64 evaluation of the same module, and inputs and parameters from the caller.

An *element* is an integer of the file that may stand for an extent (`file_numbers.py`): a module-level name, a place
of a module-level tuple or list, a literal in `get_inputs`, `get_init_inputs` or the module's `__init__`; or a setting
of a robust-kbench task (`input.batch_size`). `Binding` finds out which extents of a catalogue's problem they are: each
is changed alone, on PyTorch's `meta` device, where nothing is allocated, and what changes with it in the shapes of
inputs and parameters tells.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import inspect
import itertools
import json
import os

from file_numbers import Literals, Numbers, is_size, split
from worker_protocol import TORCH_MISSING, Fault, Raised, Stage, field

if TORCH_MISSING is None:
    import torch
    from torch.utils._pytree import tree_flatten

# Ways of setting extents that are compared with the problem's shapes.
MOST_COMPARED = 400
# Ways of naming tensors that are tried first because their names agree.
MOST_BY_NAME = 3
# What the weight and the bias of a norm are called in problems.
AFFINE = {"gamma": "weight", "beta": "bias"}
# Elements that leave every shape as it is and are tried as extents of the same size.
MOST_NEUTRAL = 6
# Trials whose seeds are drawn from the seed; a larger number is its own seed.
MOST_TRIALS = 4096


class KernelBenchFile:
    """`Model`, `get_inputs`, `get_init_inputs`, run in the order of seeds that KernelBench's `eval.py` has."""

    # Its check casts every input tensor to float32.
    casts_integers = True

    def __init__(self, path, source, overrides):
        self.numbers = Numbers(source, path)
        self.context, self.literals = self.numbers.run(overrides)
        # What the module was made from last.
        self.init = []

    def elements(self):
        return self.numbers.elements(self.context, self.literals)

    def free(self):
        """The elements that can be cut by themselves: numbers that the file writes, literals of `get_inputs`."""
        all_of = self.elements()
        return {e: v for e, v in all_of.items() if e in self.numbers.written or e.startswith("get_inputs:")}

    def made(self):
        """The module, of whatever numbers the generator is at."""
        return self.context["Model"](*self.context["get_init_inputs"]())

    def model(self, seed, _trial_seed):
        torch.manual_seed(seed)
        self.init = [cast(x, torch.float32) for x in self.context["get_init_inputs"]()]
        torch.manual_seed(seed)
        return self.again().to(dtype=torch.float32)

    def again(self):
        """The module once more from the same init arguments."""
        return self.context["Model"](*self.init)

    def model_seed(self, seed, _trial_seed):
        """The seed at which `model` makes the module."""
        return seed

    def inputs(self):
        return list(self.context["get_inputs"]())


class RobustKBenchTask:
    """`func_forward.py` with its `config_forward.json`: the single settings, weights drawn anew for each trial."""

    # Its check leaves inputs as they are.
    casts_integers = False

    def __init__(self, path, source, overrides):
        config = os.path.join(os.path.dirname(path), "config_forward.json")
        try:
            with open(config, encoding="utf-8") as f:
                settings = json.load(f)
        except (OSError, ValueError) as e:
            raise Raised("load", f"cannot read `{config}`: {e}") from e
        _, _, literals = split({e: v for e, v in overrides.items() if e.startswith("get_inputs:")})
        tree = ast.parse(source, path)
        self.literals = []
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "get_inputs":
                numbered = Literals(literals.get("get_inputs"))
                statement.body = [numbered.visit(line) for line in statement.body]
                self.literals = numbered.found
        self.context = {"__name__": "problem"}
        exec(compile(ast.fix_missing_locations(tree), path, "exec"), self.context)
        missing = [n for n in ("Model", "get_inputs", "forward_fn") if not callable(self.context.get(n))]
        if missing:
            raise Raised("load", f"the file defines no {', '.join(missing)}")

        def single(key):
            all_of = settings.get(key) or [{}]
            return dict(all_of[0])

        self.shared = single("single_shared_configs")
        self.own = {"init": single("single_init_configs"), "input": single("single_input_configs")}
        for part, function in (("init", self.context["Model"].__init__), ("input", self.context["get_inputs"])):
            for name, parameter in inspect.signature(function).parameters.items():
                if name not in self.shared and is_size(parameter.default):
                    self.own[part].setdefault(name, parameter.default)
        for element, value in overrides.items():
            if element in self.numbered():
                continue
            part, _, name = element.partition(".")
            place = self.shared if part == "shared" else self.own.get(part, {})
            if name not in place:
                raise Raised("load", f"the task has no setting `{element}`")
            place[name] = value

    def elements(self):
        parts = {"shared": self.shared, **self.own}
        own = {f"{part}.{name}": v for part, all_of in parts.items() for name, v in all_of.items() if is_size(v)}
        return {**own, **self.numbered()}

    def numbered(self):
        """The literals of `get_inputs`, which no setting changes."""
        return {f"get_inputs:{i}": v for i, v in enumerate(self.literals)}

    def free(self):
        """The elements that can be cut by themselves: all."""
        return self.elements()

    def settings(self, part, function):
        taken = inspect.signature(function).parameters
        return {k: v for k, v in {**self.own[part], **self.shared}.items() if k in taken}

    def made(self):
        """The module, of whatever numbers the generator is at."""
        kind = self.context["Model"]
        return kind(**self.settings("init", kind.__init__))

    again = made

    def model(self, _seed, trial_seed):
        torch.manual_seed(trial_seed)
        return self.made()

    def model_seed(self, _seed, trial_seed):
        """The seed at which `model` makes the module."""
        return trial_seed

    def inputs(self):
        made = self.context["get_inputs"]
        return list(made(**self.settings("input", made)))


def text_of(path):
    """The text of a file, or of the file of a task's folder, and where that is."""
    if os.path.isdir(path):
        path = os.path.join(path, "func_forward.py")
    try:
        with open(path, encoding="utf-8") as f:
            return path, f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise Fault(f"cannot read `{path}`: {e}") from e


def settings_of(path, source):
    """Where a task's settings are, None of a file that is no task of robust-kbench."""
    config = os.path.join(os.path.dirname(path), "config_forward.json")
    return config if "get_init_inputs" not in source and os.path.isfile(config) else None


def is_task(path):
    """Whether the file is a task of robust-kbench."""
    return settings_of(*text_of(path)) is not None


def load(path, overrides):
    """The file with these extents, and the SHA-256 of its text (of a task's settings too)."""
    path, source = text_of(path)
    kind = KernelBenchFile
    digest = hashlib.sha256(source.encode())
    config = settings_of(path, source)
    if config is not None:
        kind = RobustKBenchTask
        with open(config, "rb") as f:
            digest.update(f.read())
    with Stage("load"):
        return kind(path, source, overrides), digest.hexdigest()


def cast(x, dtype, integers=True):
    """A value in a dtype where it is a tensor; with `integers` also where it is not floating-point."""
    whole = isinstance(x, torch.Tensor) and not x.is_floating_point()
    return x if not isinstance(x, torch.Tensor) or (whole and not integers) else x.to(dtype=dtype)


def flat(output):
    """What a forward pass gives as a list of tensors, in the order in which an exported graph lists them."""
    leaves = tree_flatten(output)[0]
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise Raised("result", f"the model gives a {type(leaf).__name__}, which has no shape to compare")
    if not leaves:
        raise Raised("result", f"the model gives a {type(output).__name__} without a tensor")
    return leaves


def tensors(model):
    """Every tensor that the module keeps, by name: parameters, buffers, and what it holds as a plain attribute."""
    out = dict(model.named_parameters())
    out.update(model.named_buffers())
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                out[f"{prefix}.{name}" if prefix else name] = value
    return out


def put(model, name, value):
    """Gives a tensor of the module another value of the same shape."""
    prefix, _, last = name.rpartition(".")
    module = model.get_submodule(prefix)
    old = getattr(module, last)
    value = value.reshape(old.shape).to(old.dtype)
    if isinstance(old, torch.nn.Parameter):
        old.data = value
    else:
        setattr(module, last, value)


class Masks:
    """Within it, `dropout` takes the masks that are given, or keeps those that PyTorch draws."""

    def __init__(self, given=None):
        self.given = None if given is None else list(given)
        self.drawn = []

    def __enter__(self):
        self.before = torch.nn.functional.dropout
        torch.nn.functional.dropout = self.dropout
        return self

    def __exit__(self, *_):
        torch.nn.functional.dropout = self.before

    def dropout(self, input, p=0.5, training=True, inplace=False):  # noqa: A002, the caller's name of it
        if not training or p == 0 or input.device.type == "meta":
            return input
        if self.given is None:
            # The same numbers of the same generator as for the tensor itself.
            mask = self.before(torch.ones(input.shape), p, True) != 0
            self.drawn.append(mask)
        elif self.given:
            mask = self.given.pop(0).reshape(input.shape).bool()
        else:
            raise Raised("forward", "the module draws more dropout masks than are given")
        return input * (mask.to(input.dtype) / (1 - p))


def shape_of(x):
    return [int(n) for n in x.shape]


def squeezed(shape):
    return [n for n in shape if n != 1]


def said_alike(parameter, name):
    """Whether a parameter of a problem is called as a tensor of a module is: `conv_bias` as `conv.bias`, `gamma` as
    `bn.weight`; 2 where the whole name is the same, 1 where its last part is, else 0."""
    last = name.rpartition(".")[2]
    if parameter in (name, name.replace(".", "_")):
        return 2
    return int(last == parameter or last == AFFINE.get(parameter))


class Shapes:
    """Shapes of a file's inputs, tensors and output, where nothing is allocated."""

    def __init__(self, path, overrides):
        with torch.device("meta"), Masks():
            file, self.sha256 = load(path, overrides)
            self.elements = file.elements()
            self.robust = isinstance(file, RobustKBenchTask)
            inputs = [cast(x, torch.float32, file.casts_integers) for x in file.inputs()]
            model = file.model(0, 0)
            self.inputs = [shape_of(x) for x in inputs if isinstance(x, torch.Tensor)]
            self.state = {name: shape_of(t) for name, t in tensors(model).items()}
            output = model(*inputs)
            self.output = shape_of(output) if isinstance(output, torch.Tensor) else []


class Binding:
    """Which integers of a file are which extents of a problem, and which of its tensors are which parameters."""

    def __init__(self, path, request):
        self.path = path
        self.inputs = field(request, "inputs", (list,))
        self.parameters = field(request, "parameters", (list,))
        self.points = field(request, "points", (list,))
        if not self.points:
            raise Fault("no point to bind at")
        with Stage("forward"):
            self.file = Shapes(path, {})
        self.official = self.points[0]
        # What the file has no input for may be a mask that its dropout draws.
        self.masks = []
        if len(self.inputs) > len(self.file.inputs):
            self.masks = [n for n in self.inputs if n in field(request, "masks", (list,))]
        keep = [i for i, n in enumerate(self.inputs) if n not in self.masks]
        self.inputs = [self.inputs[i] for i in keep]
        for point in self.points:
            point["inputs"] = [point["inputs"][i] for i in keep]
        wanted = self.official["output"]
        # The `meta` device knows the output of some grouped convolutions wrongly: then the inputs and tensors decide.
        if wanted is not None and not self.file.robust and squeezed(self.file.output) != squeezed(wanted):
            for point in self.points:
                point["output"] = None

    def choices(self):
        """Ways that give the shapes of the problem at every point that the file accepts: the likeliest first."""
        if len(self.inputs) != len(self.file.inputs):
            raise Raised("bind", f"the file has {len(self.file.inputs)} input tensors, the problem {len(self.inputs)}")
        self.probe()
        why = "no way of naming its tensors gives the problem's ranks"
        # At every point; where nothing does that, at the official extents and at those of the desk.
        for points in (self.points, self.points[:2]):
            found = 0
            for order, states, extents in itertools.islice(self.ways(), MOST_COMPARED):
                wrong = self.differs(order, states, extents, points)
                if wrong is None:
                    found += 1
                    yield {
                        "inputs": dict(zip(self.inputs, order)),
                        "parameters": dict(zip(self.parameters, states)),
                        "masks": self.masks,
                        "extents": self.said(extents),
                    }
                else:
                    why = wrong
            if found:
                return
        raise Raised("bind", f"its extents cannot be set to those of the problem: {why}")

    def ways(self):
        for order in self.orders():
            for states in self.assignments():
                direct, neutral = self.direct(order, states)
                for extra in self.neutral(neutral):
                    yield order, states, {**direct, **extra}

    def probe(self):
        """What changes in the shapes with each element alone."""
        self.moves = {}
        for element, value in self.file.elements.items():
            for factor in (2, 3):
                try:
                    moved = Shapes(self.path, {element: value * factor})
                except Exception:
                    # A value that the module refuses: it is no free extent, unless another factor says so.
                    continue
                if len(moved.inputs) != len(self.file.inputs) or moved.state.keys() != self.file.state.keys():
                    continue
                changed = {}
                for key, old, new in self.pairs(moved):
                    if len(old) != len(new):
                        changed = None
                        break
                    for axis, (a, b) in enumerate(zip(old, new)):
                        if a != b:
                            changed[(key, axis)] = a == value and b == value * factor
                if changed is not None:
                    self.moves[element] = changed
                    break

    def pairs(self, moved):
        for i, (a, b) in enumerate(zip(self.file.inputs, moved.inputs)):
            yield ("input", i), a, b
        for name, a in self.file.state.items():
            yield ("state", name), a, moved.state[name]
        yield ("output", 0), self.file.output, moved.output

    def orders(self):
        """Which of the file's inputs each of the problem's is: as they stand, where that fits."""
        wanted = self.official["inputs"]
        plain = list(range(len(wanted)))
        yield plain
        if len(plain) <= 4:
            for order in itertools.permutations(plain):
                if list(order) != plain and all(
                    len(wanted[i]) == len(self.file.inputs[j]) for i, j in enumerate(order)
                ):
                    yield list(order)

    def assignments(self):
        """Which of the module's tensors each parameter of the problem is: in the order of both, then all others."""
        wanted = self.official["parameters"]
        names = [n for n in self.file.state if not n.endswith("num_batches_tracked")]

        def fits(shape, name):
            state = self.file.state[name]
            return state == shape or squeezed(state) == squeezed(shape) or len(state) == len(shape)

        exact = [[n for n in names if squeezed(self.file.state[n]) == squeezed(shape)] for shape in wanted]
        loose = [[n for n in names if fits(shape, n)] for shape in wanted]
        options = [a or b for a, b in zip(exact, loose)]
        # A name that says the same comes first.
        for i, name in enumerate(self.parameters):
            options[i].sort(key=lambda n: (n.rpartition(".")[2] != name and n != name, names.index(n)))
        found = sorted(itertools.islice(self.pick(options, 0, []), 2000), key=lambda s: [names.index(n) for n in s])
        if len(found) > 1:
            # In the order of the module first: both were written from the same model.
            order = [sorted(s, key=names.index) == s for s in found]
            found = [s for s, o in zip(found, order) if o] + [s for s, o in zip(found, order) if not o]
            # Before them the few that agree best in names: a norm with statistics beside a linear layer has six tensors
            # of one shape, and its problem's four parameters 360 ways, of which only some are compared.
            agreement = [sum(said_alike(p, n) for p, n in zip(self.parameters, s)) for s in found]
            most = max(agreement)
            best = [s for s, a in zip(found, agreement) if a == most][:MOST_BY_NAME]
            found = best + [s for s in found if s not in best]
        yield from found

    def pick(self, options, i, taken):
        if i == len(options):
            yield list(taken)
            return
        for name in options[i]:
            if name not in taken:
                taken.append(name)
                yield from self.pick(options, i + 1, taken)
                taken.pop()

    def direct(self, order, states):
        """Elements that are an extent of a tensor of the problem; the rest."""
        places = {("input", j): ("inputs", i) for i, j in enumerate(order)}
        places.update({("state", name): ("parameters", i) for i, name in enumerate(states)})
        if self.official["output"] is not None:
            places[("output", 0)] = ("output", 0)
        found, rest = {}, []
        for element in self.file.elements:
            moves = self.moves.get(element)
            if not moves:
                rest.append(element)
                continue
            straight = [
                (*places[key], axis)
                for (key, axis), own in moves.items()
                if own and key in places and self.has_axis(places[key], key, axis)
            ]
            if straight:
                found[element] = self.axis(straight[0])
            else:
                rest.append(element)
        return found, rest

    def of(self, point, part, i):
        """The shape of a tensor of the problem at a point."""
        return point["output"] if part == "output" else point[part][i]

    def has_axis(self, place, key, axis):
        shape = {"input": self.file.inputs, "state": self.file.state, "output": [self.file.output]}[key[0]][key[1]]
        return len(self.of(self.official, *place)) == len(shape) or squeezed(shape)[:1] == shape[axis : axis + 1]

    def axis(self, place):
        """A place within a shape; the one extent of a shape that the file writes with further ones of 1."""
        part, i, axis = place
        return (part, i, min(axis, len(self.of(self.official, part, i)) - 1))

    def neutral(self, rest):
        """Elements that are no extent of a shape as they stand, as a dim of the same size, or as they are."""
        sizes = self.official["sizes"]
        free = []
        for element in rest:
            if ":" in element:
                continue
            value = self.file.elements[element]
            names = [q for q, v in sizes.items() if v == value]
            # An initial or a part of the name says what an element is.
            word = element.rpartition(".")[2].lower()
            like = [q for q in names if word.startswith(q.lower()) or q.lower() in word.split("_")]
            initials = "".join(w[:1] for w in word.split("_"))
            like += [q for q in names if q not in like and q.lower() in (initials, initials[::-1], initials[-1:])]
            if names:
                free.append((element, like, [q for q in names if q not in like]))
        free = free[:MOST_NEUTRAL]
        options = [[*like, None, *other] for _, like, other in free]
        for combination in itertools.islice(itertools.product(*options), 200):
            yield {e: ("size", q) for (e, _, _), q in zip(free, combination) if q is not None}

    def values(self, extents, point):
        out = {}
        for element, source in extents.items():
            if source[0] == "size":
                out[element] = point["sizes"][source[1]]
            else:
                part, i, axis = source
                out[element] = self.of(point, part, i)[axis]
        return out

    def differs(self, order, states, extents, points):
        """Why the file does not have the problem's shapes at some point, None where it has."""
        for number, point in enumerate(points):
            values = self.values(extents, point)
            try:
                shapes = Shapes(self.path, values)
            except Exception as e:
                # PyTorch, or its `meta` device, may refuse a shape that the problem has beside the main ones.
                if number >= 2:
                    continue
                return f"with {values}: {type(e).__name__}: {str(e)[:200]}"
            for i, (name, shape) in enumerate(zip(self.inputs, point["inputs"])):
                if squeezed(shapes.inputs[order[i]]) != squeezed(shape):
                    return f"with {values} the input `{name}` has the shape {shapes.inputs[order[i]]} for {shape}"
            for name, state, shape in zip(self.parameters, states, point["parameters"]):
                if squeezed(shapes.state.get(state, [])) != squeezed(shape):
                    return f"with {values} `{state}` has the shape {shapes.state.get(state)} for {shape} of `{name}`"
            wanted = point["output"]
            if wanted is not None and squeezed(shapes.output) != squeezed(wanted):
                return f"with {values} the output has the shape {shapes.output} for {wanted}"
        return None

    def said(self, extents):
        out = {}
        for element, source in extents.items():
            if source[0] == "size":
                out[element] = {"size": source[1]}
            else:
                part, i, axis = source
                name = {"inputs": self.inputs, "parameters": self.parameters}.get(part, {0: None})[i]
                out[element] = {"tensor": name, "axis": axis}
        return out


def trial_seed(seed, trial):
    """The seed of a trial as both benchmarks draw it: the n-th number after the seed."""
    if trial >= MOST_TRIALS:
        return trial
    torch.manual_seed(seed)
    for _ in range(trial):
        torch.randint(0, 2**32 - 1, (1,))
    return torch.randint(0, 2**32 - 1, (1,)).item()


class Reference:
    """A file at some extents, and what it computes."""

    def __init__(self, path, overrides, seed):
        self.file, self.sha256 = load(path, overrides)
        self.seed = seed
        self.kept = None

    def model(self, trial):
        robust = isinstance(self.file, RobustKBenchTask)
        if self.kept is None or robust:
            with Stage("model"):
                self.kept = self.file.model(self.seed, trial)
        # A forward pass may keep a state.
        return copy.deepcopy(self.kept)

    def evaluate(self, trial, scale, given_inputs, given_parameters, given_masks):
        """Inputs, tensors of the module, masks, and the outputs in float32 and float64 as lists, of one evaluation.

        `given_inputs` has None in the places of the file's own inputs; only those are scaled, and only where they are
        floating-point before the check casts them. `given_parameters` is by name.
        """
        seed = trial_seed(self.seed, trial)
        model = self.model(seed)
        with Stage("inputs"):
            torch.manual_seed(seed)
            inputs, at = [], 0
            for x in self.file.inputs():
                if isinstance(x, torch.Tensor):
                    given = given_inputs[at] if at < len(given_inputs) else None
                    at += 1
                    if given is not None:
                        x = given.reshape(x.shape)
                    elif x.is_floating_point():
                        x = x.to(torch.float32)
                        x = x if scale == 1.0 else x * scale
                inputs.append(cast(x, torch.float32, self.file.casts_integers))
        with Stage("model"):
            for name, value in given_parameters.items():
                put(model, name, value)
        kept = {name: t.detach().clone() for name, t in tensors(model).items()}
        before = copy.deepcopy(model)

        def copies(dtype):
            whole = self.file.casts_integers
            return [cast(x, dtype, whole).clone() if isinstance(x, torch.Tensor) else x for x in inputs]

        with Stage("forward"), Masks(given_masks) as masks:
            torch.manual_seed(seed)
            official = model(*copies(torch.float32))
        if given_masks is None:
            given_masks = masks.drawn
        with Stage("truth"), Masks(given_masks):
            torch.manual_seed(seed)
            # What the forward pass makes by itself is of the default dtype.
            torch.set_default_dtype(torch.float64)
            try:
                exact = before.double()
                for name, t in tensors(exact).items():
                    if t.dtype == torch.float32:
                        put_dtype(exact, name, t.double())
                truth = exact(*copies(torch.float64))
            finally:
                torch.set_default_dtype(torch.float32)
        official, truth = flat(official), flat(truth)
        own = [x for x in inputs if isinstance(x, torch.Tensor)]
        return own, kept, given_masks, official, truth


def put_dtype(model, name, value):
    """Gives a plain attribute of the module a tensor of another dtype."""
    prefix, _, last = name.rpartition(".")
    setattr(model.get_submodule(prefix), last, value)


class FileRequests:
    """The requests `bind` and `reference`, for a worker's class to take in."""

    reference_of = None
    choices = None

    def bind(self, request):
        path = field(request, "path", (str,))
        if not field(request, "again", (bool,)):
            torch.set_default_dtype(torch.float32)
            self.binding = Binding(path, request)
            self.choices = self.binding.choices()
        if self.choices is None:
            raise Fault("`bind` for another choice before a first one")
        with Stage("load"):
            choice = next(self.choices, None)
        return {"type": "bound", "sha256": self.binding.file.sha256, "choice": choice}

    def reference(self, request):
        path, overrides = field(request, "path", (str,)), field(request, "overrides", (dict,))
        seed, trial = field(request, "seed", (int,)), field(request, "trial", (int,))
        torch.set_default_dtype(torch.float32)
        key = (path, json.dumps(overrides, sort_keys=True), seed)
        if self.reference_of is None or self.reference_of[0] != key:
            self.reference_of = None
            self.reference_of = (key, Reference(path, overrides, seed))
        reference = self.reference_of[1]
        given = {t["name"]: self.operand(t, torch.float32)[1] for t in field(request, "tensors", (list,))}

        def tensor(name):
            if name is not None and name not in given:
                raise Fault(f"no tensor `{name}` is given")
            return None if name is None else given[name]

        inputs = [tensor(n) for n in field(request, "inputs", (list,))]
        parameters = {k: tensor(n) for k, n in field(request, "parameters", (dict,)).items() if n is not None}
        masks = field(request, "masks", (list, type(None)))
        masks = None if masks is None else [tensor(n) for n in masks]
        scale = float(field(request, "scale", (int, float)))
        own, kept, drawn, official, truth = reference.evaluate(trial, scale, inputs, parameters, masks)
        results = [(f"official {k}", t) for k, t in enumerate(official)]
        results += [(f"truth {k}", t) for k, t in enumerate(truth)]
        wanted = {"type": "reference", **field(request, "want", (dict,))}
        for i, dtype in enumerate(field(wanted, "inputs", (list,))):
            if dtype is not None:
                results.append((f"input {i}", exactly(own[i], self.dtypes[dtype])))
        for name in field(wanted, "parameters", (list,)):
            if name not in kept:
                raise Raised("model", f"the module has no tensor `{name}`")
            results.append((f"parameter {name}", kept[name]))
        for i in range(field(wanted, "masks", (int,))):
            if i >= len(drawn):
                raise Raised("forward", f"the module draws {len(drawn)} dropout masks")
            results.append((f"mask {i}", drawn[i]))
        return {"type": "referenced", "sha256": reference.sha256, "outputs": self.give(results)}


def exactly(x, dtype):
    """The tensor in another dtype, where that loses nothing."""
    y = x.to(dtype)
    if not torch.equal(y.to(x.dtype), x):
        raise Raised("inputs", f"an input of {x.dtype} does not hold values of {dtype}")
    return y
