"""Modules as graphs: what the worker exports, how it says tensors were drawn, which extents it cuts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from parent import NUMPY, Parent
from test_torch_worker import WORKER, Torch

torch = pytest.importorskip("torch", reason="skipped: no torch")

DATA = Path(__file__).resolve().parents[2] / "testdata" / "export"
MODULES = sorted(DATA.glob("modules/*.py"))


def loaded(worker, path, overrides=None):
    request = {"type": "problem", "path": str(path), "overrides": overrides or {}, "seed": 42, "trials": 1}
    reply = worker.ask(request)
    assert reply["type"] == "problem", reply


def exported(worker, **options):
    reply = worker.ask({"type": "export", **options})
    assert reply["type"] == "exported", reply
    return reply["graph"]


def fetched(worker, *names):
    reply = worker.ask({"type": "values", "names": list(names)})
    assert reply["type"] == "values", reply
    out = []
    for o in reply["outputs"]:
        dtype, count = np.dtype(NUMPY[o["dtype"]]), int(np.prod(o["shape"]))
        end = o["offset"] + count * dtype.itemsize
        out.append(np.frombuffer(worker.map[o["offset"] : end], dtype).reshape(o["shape"]))
    return out


@pytest.mark.parametrize("module", MODULES, ids=lambda p: p.stem)
def test_the_committed_graphs_are_what_is_exported(module):
    if torch.__version__.split("+")[0] != "2.13.0":
        pytest.skip("the committed graphs are PyTorch 2.13's")
    expected = json.loads((DATA / "graphs" / f"{module.stem}.json").read_text())
    with Torch() as worker:
        loaded(worker, module)
        graph = exported(worker, decompose=module.stem == "recurrent")
    expected.pop("name")
    assert graph == expected


def test_random_numbers_of_the_forward_pass_are_kept_and_drawn_once():
    with Torch() as worker:
        loaded(worker, DATA / "modules" / "masks.py")
        exported(worker)
        assert worker.ask({"type": "reveal"}) == {"type": "revealed", "outputs": 1, "random": 2}
        x, w, b, mask, noise, out, truth = fetched(
            worker,
            "input:0",
            "parameter:linear.weight",
            "parameter:linear.bias",
            "random:0",
            "random:1",
            "output:0",
            "truth:0",
        )
    assert set(np.unique(mask)) <= {0, 1}
    h = (x.astype(np.float64) @ w.T + b) * (mask / 0.75) + noise
    assert truth.dtype == np.float64
    np.testing.assert_allclose(truth, np.log(np.exp(h).sum(1, keepdims=True)), rtol=1e-6)
    np.testing.assert_allclose(out, truth, rtol=1e-5)


FILE = """
import torch
rows, columns = 64, 512
batch_size = 128
depth = width = 32
kernel_size = 7
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(n) * 0.02)
        self.shift = torch.nn.Parameter(torch.zeros(n))
        self.other = torch.nn.Parameter(torch.randn(n).cumsum(0))
        self.register_buffer("one", torch.full((n,), 3.0))
        torch.nn.init.uniform_(self.shift, -2, 2)
    def forward(self, x, y, z, k):
        return x * self.scale + self.shift + self.other + self.one + y.sum() + z.sum() + k.sum()
def get_inputs():
    a = torch.randn(columns, columns)
    return [
        torch.rand(batch_size, rows, columns),
        (a + a.T) / 2,
        torch.rand(depth, width) * 4 - 1,
        torch.randint(0, 10, (3,)),
    ]
def get_init_inputs():
    return [columns]
"""


def test_how_tensors_were_drawn_is_said_in_the_catalogues_words(tmp_path):
    path = tmp_path / "drawn.py"
    path.write_text(FILE)
    with Torch(1 << 26) as worker:
        loaded(worker, path)
        graph = exported(worker)
    said = {t["target"]: (t["init"], t["structure"], t["fitted"]) for k in graph for t in listed(graph, k)}
    assert said.pop("parameter:other")[2]
    assert said == {
        "input:0": ("rand", None, False),
        "input:1": ("randn", "symmetric", False),
        "input:2": ("uniform(-1, 3)", None, False),
        "input:3": ("randint(0, 10)", None, False),
        "parameter:scale": ("normal(0, 0.02)", None, False),
        "parameter:shift": ("uniform(-2, 2)", None, False),
        "buffer:one": ("full(3)", None, False),
    }


def listed(graph, kind):
    return graph[kind] if kind in ("inputs", "parameters", "buffers", "constants") else []


def test_extents_are_cut_until_the_work_fits_batches_first_and_equal_ones_together(tmp_path):
    path = tmp_path / "cut.py"
    path.write_text(FILE)
    with Torch() as worker:
        reply = worker.ask({"type": "shrink", "path": str(path), "overrides": {}, "work": 400_000})
        assert reply["type"] == "shrunk", reply
        cut = reply["overrides"]
        assert reply["work"] <= 400_000
        assert cut["batch_size"] == 2
        assert "kernel_size" not in cut
        loaded(worker, path, cut)
        less = worker.ask({"type": "shrink", "path": str(path), "overrides": {}, "work": 10**12})
        assert less["overrides"] == {}


TIED = """
import torch
class Model(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
    def forward(self, x, y, z):
        assert x.shape[1] == 2 * y.shape[0]
        for layer in self.layers:
            x = layer(x)
        return x, y, z.sum()
width = 2048
half = 1024
layer_sizes = [512, 256]
def get_inputs():
    return [torch.rand(8, width), torch.rand(half), torch.rand(2, 300, 300)]
def get_init_inputs():
    return [[width, *layer_sizes]]
"""


def test_what_is_tied_what_is_large_whatever_its_name_and_literals_are_cut_too(tmp_path):
    path = tmp_path / "tied.py"
    path.write_text(TIED)
    with Torch() as worker:
        reply = worker.ask({"type": "shrink", "path": str(path), "overrides": {}, "work": 1000})
        cut = reply["overrides"]
        # Literals: the batch and two edges, which are as long as each other.
        assert cut["get_inputs:2"] == cut["get_inputs:3"] <= 19, reply
        assert cut["width"] == 2 * cut["half"] < 2048, reply
        # Above what a number of layers may be.
        assert max(cut["layer_sizes[0]"], cut["layer_sizes[1]"]) <= 64, reply
        loaded(worker, path, cut)
        assert exported(worker)["inputs"][2]["shape"] == [cut.get("get_inputs:1", 2), *[cut["get_inputs:2"]] * 2]


def test_both_names_of_one_number_are_given(tmp_path):
    path = tmp_path / "names.py"
    text = "rows = columns = 4096\ndef get_inputs():\n    return [torch.rand(rows, columns)]\n"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        f"{text}def get_init_inputs():\n    return []\n"
    )
    with Torch() as worker:
        cut = worker.ask({"type": "shrink", "path": str(path), "overrides": {}, "work": 1000})["overrides"]
    assert cut["rows"] == cut["columns"] < 64


TASK = """
import torch
def forward_fn(x, weight):
    return x * weight
class Model(torch.nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)
def get_inputs(batch_size=1, features=7):
    return [torch.randn(batch_size, features)]
"""


def test_a_task_of_robust_kbench_is_cut_by_its_settings_and_exported_with_the_weights_of_the_first_trial(tmp_path):
    path = tmp_path / "func_forward.py"
    path.write_text(TASK)
    settings = {"single_shared_configs": [{"features": 30}], "single_input_configs": [{"batch_size": 5000}]}
    (tmp_path / "config_forward.json").write_text(json.dumps(settings))
    with Torch() as worker:
        cut = worker.ask({"type": "shrink", "path": str(path), "overrides": {}, "work": 1000})["overrides"]
        assert cut["input.batch_size"] < 100, cut
        loaded(worker, path, cut)
        graph = exported(worker)
        assert graph["inputs"][0]["shape"] == [cut["input.batch_size"], cut.get("shared.features", 30)]
        assert graph["parameters"][0]["init"] == "randn"
        (weight,) = fetched(worker, "parameter:weight")
        request = {"type": "reference", "path": str(path), "overrides": cut, "seed": 42, "trial": 0, "scale": 1.0}
        request |= {"inputs": [None], "parameters": {}, "masks": None, "tensors": []}
        request["want"] = {"inputs": ["f32"], "parameters": ["weight"], "masks": 0}
        one = {o["name"]: o for o in worker.ask(request)["outputs"]}["parameter weight"]
        kept = np.frombuffer(worker.map[one["offset"] : one["offset"] + weight.nbytes], weight.dtype)
        np.testing.assert_array_equal(kept.reshape(one["shape"]), weight)


def test_integers_of_such_a_task_stay_integers_because_its_check_leaves_them(tmp_path):
    path = tmp_path / "func_forward.py"
    path.write_text(
        "import torch\ndef forward_fn(x, i):\n    return torch.nn.functional.cross_entropy(x, i)\n"
        "class Model(torch.nn.Module):\n    def forward(self, x, i, fn=forward_fn):\n        return fn(x, i)\n"
        "def get_inputs(rows=5):\n    return [torch.randn(rows, 3), torch.randint(0, 3, (rows,))]\n"
    )
    (tmp_path / "config_forward.json").write_text("{}")
    with Torch() as worker:
        loaded(worker, path)
        graph = exported(worker)
        assert [i["dtype"] for i in graph["inputs"]] == ["f32", "i64"]
        assert graph["cast_integers"] is True
        assert graph["inputs"][1]["init"] == "randint(0, 3)"
        assert worker.ask({"type": "reveal"}) == {"type": "revealed", "outputs": 1, "random": 0}


def test_what_cannot_be_exported_is_answered_with_what_is_wrong(tmp_path):
    path = tmp_path / "branches.py"
    path.write_text(FILE.replace("return x * self.scale", "return x if x.sum() > 0 else x * self.scale"))
    with Torch(1 << 26) as worker:
        assert worker.ask({"type": "export"})["type"] == "fault"
        loaded(worker, path)
        reply = worker.ask({"type": "export"})
        assert (reply["type"], reply["stage"]) == ("raised", "export"), reply
        assert worker.ask({"type": "reveal"})["type"] == "fault"
        assert worker.ask({"type": "values", "names": ["input:0"]})["type"] == "fault"
        loaded(worker, DATA / "modules" / "masks.py")
        exported(worker)
        assert worker.ask({"type": "values", "names": ["input:9"]})["type"] == "fault"
    with Parent(64, WORKER) as parent:
        assert "before a `hello`" in parent.ask({"type": "export"})["message"]
