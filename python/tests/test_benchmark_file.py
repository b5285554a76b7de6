"""Problem files of benchmarks: their extents, the order of seeds, dropout's masks, both forms."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

# The worker's modules lie beside each other and import each other by their bare names.
sys.path.insert(0, str(Path(find_spec("assay.torch_worker").origin).parent))

import benchmark_file as b  # noqa: E402
from worker_protocol import Raised  # noqa: E402

FILE = """
import torch
rows, columns = 6, 8
shape = (rows, columns, 4)
class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.rand(columns, 1))
        self.fixed = torch.ones(3)
    def forward(self, x, y):
        return x * self.factor + y.mean()
def get_inputs():
    return [torch.rand(*shape), torch.rand(5, 7)]
def get_init_inputs():
    return [columns]
"""
TASK = """
import torch
def forward_fn(x, weight):
    return x @ weight
class Model(torch.nn.Module):
    def __init__(self, wide: int = 8, out: int = 4):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(wide, out))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)
def get_inputs(rows: int = 16, wide: int = 8):
    return [torch.randn(rows, wide)]
"""


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def file(tmp_path):
    path = tmp_path / "1_mine.py"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def task(tmp_path, settings):
    (tmp_path / "func_forward.py").write_text(TASK, encoding="utf-8")
    (tmp_path / "config_forward.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(tmp_path)


def test_elements_are_names_places_and_literals_and_each_can_be_set(tmp_path):
    path = file(tmp_path)
    loaded, sha256 = b.load(path, {})
    places = {"shape[0]": 6, "shape[1]": 8, "shape[2]": 4}
    literals = {"__init__:0": 1, "__init__:1": 3, "get_inputs:0": 5, "get_inputs:1": 7}
    assert loaded.elements() == {"rows": 6, "columns": 8, **places, **literals}
    assert len(sha256) == 64
    shapes = b.Shapes(path, {"rows": 2, "columns": 3, "shape[2]": 9, "get_inputs:1": 11, "__init__:1": 2})
    assert shapes.inputs == [[2, 3, 9], [5, 11]]
    assert shapes.state == {"factor": [3, 1], "fixed": [2]}
    assert shapes.output == [2, 3, 9]
    assert b.Shapes(path, {"shape": [2, 8, 1]}).inputs[0] == [2, 8, 1]
    with pytest.raises(Raised, match="nobody"):
        b.load(path, {"nobody": 1})


def problem(points):
    names = {"inputs": ["p", "q"], "parameters": ["w"], "masks": []}
    shapes = [
        {"sizes": {}, "inputs": [[r, c, z], [5, 7]], "parameters": [[c]], "output": [r, c, z]} for r, c, z in points
    ]
    return {"type": "bind", **names, "points": shapes}


def test_extents_are_bound_by_what_changes_with_them(tmp_path):
    binding = b.Binding(file(tmp_path), problem([(6, 8, 4), (2, 3, 5), (1, 1, 1)]))
    choice = next(binding.choices())
    assert choice["parameters"] == {"w": "factor"}
    assert choice["inputs"] == {"p": 0, "q": 1}
    extents = {name: (source["tensor"], source["axis"]) for name, source in choice["extents"].items()}
    assert extents["rows"] == ("p", 0)
    assert extents["columns"] == ("p", 1)
    assert extents["shape[2]"] == ("p", 2)


NORM = """
import torch
batch, wide, out = 6, 8, 4
class Model(torch.nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.gemm = torch.nn.Linear(wide, out)
        self.scale = torch.nn.Parameter(torch.randn(out))
        self.bn = torch.nn.BatchNorm1d(out)
    def forward(self, x):
        return self.bn(self.gemm(x) * self.scale)
def get_inputs():
    return [torch.rand(batch, wide)]
def get_init_inputs():
    return [wide, out]
"""


def test_of_six_tensors_of_one_shape_those_called_alike_are_tried_first(tmp_path):
    path = tmp_path / "2_norm.py"
    path.write_text(NORM, encoding="utf-8")
    parameters = ["weight", "bias", "scale", "gamma", "beta"]
    points = [
        {"sizes": {}, "inputs": [[m, k]], "parameters": [[n, k], [n], [n], [n], [n]], "output": [m, n]}
        for m, k, n in [(6, 8, 4), (2, 3, 5)]
    ]
    request = {"type": "bind", "inputs": ["x"], "parameters": parameters, "masks": [], "points": points}
    choices = list(b.Binding(str(path), request).choices())
    names = ["gemm.weight", "gemm.bias", "scale", "bn.weight", "bn.bias"]
    assert choices[0]["parameters"] == dict(zip(parameters, names))
    # All others follow, each once: some problem may be called otherwise.
    ways = {tuple(c["parameters"].values()) for c in choices}
    assert len(ways) == len(choices) == 360


def test_a_problem_of_another_shape_is_refused_with_what_differs(tmp_path):
    request = problem([(6, 8, 4), (2, 3, 5)])
    request["points"][1]["parameters"] = [[4]]
    with pytest.raises(Raised, match=r"the shape \[3, 1\] for \[4\] of `w`") as e:
        next(b.Binding(file(tmp_path), request).choices())
    assert e.value.stage == "bind"


def test_trials_have_the_seeds_that_the_benchmarks_draw():
    torch.manual_seed(42)
    drawn = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(5)]
    assert [b.trial_seed(42, n) for n in range(5)] == drawn
    assert b.trial_seed(42, 1 << 40) == 1 << 40


def test_own_inputs_are_scaled_and_given_ones_and_given_parameters_are_taken_as_they_are(tmp_path):
    reference = b.Reference(file(tmp_path), {"rows": 2}, 42)
    (x, y), kept, _, (official,), (truth,) = reference.evaluate(0, -3.0, [None, torch.ones(5, 7)], {}, None)
    torch.manual_seed(b.trial_seed(42, 0))
    assert torch.equal(x, torch.rand(2, 8, 4) * -3.0)
    assert torch.equal(y, torch.ones(5, 7))
    assert torch.equal(official, x * kept["factor"] + 1)
    assert truth.dtype == torch.float64
    given = {"factor": torch.full((8,), 2.0), "fixed": torch.zeros(3)}
    _, kept, _, (official,), _ = reference.evaluate(0, 1.0, [torch.ones(2, 8, 4), torch.zeros(5, 7)], given, None)
    assert torch.equal(official, torch.full((2, 8, 4), 2.0))
    # The next evaluation begins with the module as it was made.
    _, again, _, _, _ = reference.evaluate(0, 1.0, [], {}, None)
    assert not torch.equal(again["factor"], kept["factor"])


def test_masks_are_those_that_pytorch_draws_and_can_be_given():
    x = torch.rand(64, 3) + 1
    torch.manual_seed(5)
    plain = torch.nn.functional.dropout(x, 0.3, True)
    torch.manual_seed(5)
    with b.Masks() as masks:
        assert torch.equal(torch.nn.Dropout(0.3)(x), plain)
    with b.Masks(masks.drawn):
        assert torch.equal(torch.nn.functional.dropout(x, 0.3), plain)
        with pytest.raises(Raised, match="more dropout masks"):
            torch.nn.functional.dropout(x, 0.3)


def test_a_task_has_settings_and_weights_of_its_own_for_each_trial(tmp_path):
    settings = {
        "single_input_configs": [{"rows": 3}],
        "single_init_configs": [{}],
        "single_shared_configs": [{"wide": 5}],
    }
    path = task(tmp_path, settings)
    loaded, _ = b.load(path, {})
    assert loaded.elements() == {"shared.wide": 5, "init.out": 4, "input.rows": 3}
    inputs = Path(path, "func_forward.py")
    inputs.write_text(TASK.replace("randn(rows, wide)", "randn(rows, 1, 6, wide)"), encoding="utf-8")
    assert b.load(path, {})[0].elements() == {**loaded.elements(), "get_inputs:0": 1, "get_inputs:1": 6}
    assert b.Shapes(path, {"get_inputs:1": 2, "input.rows": 4}).inputs == [[4, 1, 2, 5]]
    inputs.write_text(TASK, encoding="utf-8")
    shapes = b.Shapes(path, {"shared.wide": 6, "init.out": 2, "input.rows": 7})
    assert (shapes.inputs, shapes.state, shapes.output) == ([[7, 6]], {"weight": [6, 2]}, [7, 2])
    reference = b.Reference(path, {}, 42)
    weights = [reference.evaluate(trial, 1.0, [], {}, None)[1]["weight"] for trial in (0, 1, 0)]
    assert not torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


CLASSES = """
import torch
def forward_fn(x, i):
    return torch.nn.functional.cross_entropy(x, i)
class Model(torch.nn.Module):
    def forward(self, x, i, fn=forward_fn):
        return fn(x, i)
def get_inputs(rows=5, classes=3):
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,))]
"""


def test_integers_are_cast_where_the_benchmarks_check_casts_them(tmp_path):
    path = task(tmp_path, {})
    (tmp_path / "func_forward.py").write_text(CLASSES, encoding="utf-8")
    reference = b.Reference(path, {}, 42)
    given = [None, torch.tensor([0, 1, 2, 1, 0])]
    for integers in ([], given):
        (x, i), _, _, (official,), (truth,) = reference.evaluate(0, 1.0, integers, {}, None)
        assert i.dtype == torch.int64
        assert torch.equal(official, torch.nn.functional.cross_entropy(x, i))
        assert abs(official.double() - truth) < 1e-6
    assert torch.equal(i, given[1])
    # The same in the other benchmark's form raises in its own check.
    other = tmp_path / "1_classes.py"
    other.write_text(CLASSES + "def get_init_inputs():\n    return []\n", encoding="utf-8")
    with pytest.raises(Raised, match="dtype") as e:
        b.Reference(str(other), {}, 42).evaluate(0, 1.0, [], {}, None)
    assert e.value.stage == "forward"


def test_all_that_a_forward_pass_gives_is_listed_as_an_exported_graph_lists_it(tmp_path):
    path = Path(file(tmp_path))
    given = "x * self.factor + y.mean(), (y, [x.sum()])"
    path.write_text(FILE.replace("x * self.factor + y.mean()", given), encoding="utf-8")
    (x, y), _, _, official, truth = b.Reference(str(path), {}, 42).evaluate(0, 1.0, [], {}, None)
    assert [list(t.shape) for t in official] == [[6, 8, 4], [5, 7], []]
    assert torch.equal(official[1], y)
    assert torch.equal(official[2], x.sum())
    assert [t.dtype for t in truth] == [torch.float64] * 3
    for wrong in ("x, 3", "()", "[None, x]"):
        path.write_text(FILE.replace("x * self.factor + y.mean()", wrong), encoding="utf-8")
        with pytest.raises(Raised, match="the model gives") as e:
            b.Reference(str(path), {}, 42).evaluate(0, 1.0, [], {}, None)
        assert e.value.stage == "result"
