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
