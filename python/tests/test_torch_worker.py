"""The PyTorch worker as its parent sees it: a process, JSON lines and the exchange."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest
from parent import NUMPY, Parent

pytest.importorskip("torch", reason="skipped: no torch")

WORKER = find_spec("assay.torch_worker").origin


class Torch(Parent):
    """A worker that has greeted."""

    def __init__(self, exchange_bytes=1 << 16):
        super().__init__(exchange_bytes, WORKER)
        self.hello = {"type": "hello", "version": 1, "threads": 1}
        self.hello["exchange"] = {"path": self.file.name, "bytes": self.bytes}

    def __enter__(self):
        assert self.ask(self.hello)["type"] == "ready"
        return self

    def evaluate(self, program, precision="f64", scalars=None, outputs=("y",), **inputs):
        """The reply to a program over these arrays, each with the strides that it has in numpy."""
        at, tensors = 0, []
        for name, x in inputs.items():
            base = x if x.base is None else x.base
            start = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            at = -(-at // 16) * 16
            self.map[at : at + base.nbytes] = base.tobytes()
            tensors.append(
                {
                    "name": name,
                    "dtype": {np.dtype(v): k for k, v in NUMPY.items() if k != "bf16"}[x.dtype],
                    "shape": list(x.shape),
                    "strides": [s // x.itemsize for s in x.strides],
                    "start": start // x.itemsize,
                    "offset": at,
                    "count": base.size,
                }
            )
            at += base.nbytes
        request = {"type": "evaluate", "program": program, "outputs": list(outputs), "precision": precision}
        return self.ask({**request, "scalars": scalars or {}, "tensors": tensors})

    def values(self, reply):
        """The outputs of a reply as arrays."""
        assert reply["type"] == "evaluated", reply
        out = []
        for o in reply["outputs"]:
            dtype, count = np.dtype(NUMPY[o["dtype"]]), int(np.prod(o["shape"]))
            end = o["offset"] + count * dtype.itemsize
            out.append(np.frombuffer(self.map[o["offset"] : end], dtype).reshape(o["shape"]))
        return out


def test_a_program_runs_as_it_stands_over_views_with_strides():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)[1:, ::2].T
    with Torch() as torch:
        reply = torch.evaluate(
            "h = relu(x - c)\ny = h @ transpose(h, 0, 1)\nn = sum(h)", scalars={"c": 9}, x=x, outputs=("y", "n")
        )
        assert [(o["dtype"], o["shape"]) for o in reply["outputs"]] == [("f64", [3, 3]), ("f64", [])]
        h = np.maximum(x.astype(np.float64) - 9, 0)
        y, n = torch.values(reply)
        assert np.array_equal(y, h @ h.T)
        assert n == h.sum()
        assert torch.quit()[:2] == (0, "")


def test_floats_take_the_precision_and_integers_stay():
    x, i = np.array([0.1, 0.2], np.float64), np.array([3, 4], np.int32)
    with Torch() as torch:
        for precision, dtype in (("f32", "f32"), ("f64", "f64")):
            reply = torch.evaluate("y = x * 2\nz = i * 2\nw = x + i", precision, x=x, i=i, outputs=("y", "z", "w"))
            assert [o["dtype"] for o in reply["outputs"]] == [dtype, "i32", dtype]
        single = torch.values(torch.evaluate("y = x + 0.1", "f32", x=x))[0]
        assert np.array_equal(single, x.astype(np.float32) + np.float32(0.1))


def test_methods_and_tuples_of_the_language_mean_what_they_mean_in_it():
    x = np.arange(6, dtype=np.float64).reshape(2, 3)
    program = "v = view(x, (3, 2))\nm = x > 2\ny = masked_fill(x, m, -inf)\n"
    program += "z = einsum('ij,jk->ik', (x, v))\na, b = max(x, dim=1)"
    with Torch() as torch:
        y, z, a, b = torch.values(torch.evaluate(program, x=x, outputs=("y", "z", "a", "b")))
        assert np.array_equal(y, np.where(x > 2, -np.inf, x))
        assert np.array_equal(z, x @ x.reshape(3, 2))
        assert a.tolist() == [2, 5]
        assert b.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("program", "stage", "words"),
    [
        ("y = relu(z)", "forward", "PyTorch has no function `z`"),
        ("y = open('/etc/passwd')", "forward", "no function `open`"),
        ("y = x @ x", "forward", "mat1 and mat2 shapes"),
        ("y = 3", "result", "no tensor"),
        ("y = x + 1e300 * 1j", "result", "complex128"),
    ],
)
def test_what_pytorch_refuses_is_answered_with_its_words_and_the_worker_lives_on(program, stage, words):
    with Torch() as torch:
        reply = torch.evaluate(program, x=np.ones((2, 3)))
        assert (reply["type"], reply["stage"]) == ("raised", stage), reply
        assert words in reply["message"]
        assert torch.values(torch.evaluate("y = x", x=np.ones(2)))[0].tolist() == [1, 1]


def test_requests_it_cannot_serve_are_faults_that_say_why():
    with Torch(64) as torch:
        x = np.ones(2)
        for reply, words in [
            (torch.evaluate("y = ("), "the program is not one"),
            (torch.evaluate("z = x", x=x), "defines no ['y']"),
            (torch.evaluate("y = x", "f16", x=x), "`f16`"),
            (torch.evaluate("y = cat((x, x, x, x, x))", x=x), "80 bytes for an exchange of 64"),
            (torch.ask(torch.hello), "a second `hello`"),
            (torch.ask({"type": "run"}), "no request of the protocol"),
        ]:
            assert (reply["type"], words in reply["message"]) == ("fault", True), reply
        tensor = {"name": "x", "dtype": "f64", "shape": [2], "strides": [1], "start": 0, "offset": 0, "count": 2}
        request = {"type": "evaluate", "program": "y = x", "outputs": ["y"], "precision": "f64", "scalars": {}}
        for change in ({"strides": [9]}, {"start": 5}, {"count": 99}, {"dtype": "f8"}, {"strides": []}):
            reply = torch.ask({**request, "tensors": [{**tensor, **change}]})
            assert reply["type"] == "fault", reply
        assert torch.ask({**request, "tensors": [tensor]})["type"] == "evaluated"
    with Parent(64, WORKER) as parent:
        assert "before a `hello`" in parent.ask({"type": "evaluate"})["message"]
        assert "version 2" in parent.ask({"type": "hello", "version": 2})["message"]


FILE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(n))
        self.drop = nn.Dropout(0.5)

    def forward(self, x, i):
        x += 0
        return self.drop(x * self.weight) * 1e-3 + torch.zeros(x.shape) + i

rows = 1000
n = 7

def get_inputs():
    return [torch.rand(rows, n), torch.randint(0, 1, (n,))]

def get_init_inputs():
    return [n]
"""


def official(path, rows, trial):
    """The file's output as the benchmark's own check gets it, written down from its steps."""
    import torch

    context = {}
    exec(path.read_text().replace("rows = 1000", f"rows = {rows}"), context)
    with torch.no_grad():
        torch.manual_seed(42)
        init = context["get_init_inputs"]()
        torch.manual_seed(42)
        model = context["Model"](*init)
        torch.manual_seed(42)
        seeds = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(3)]
        torch.manual_seed(seeds[trial])
        inputs = [x.to(torch.float32) for x in context["get_inputs"]()]
        torch.manual_seed(seeds[trial])
        return model(*inputs)


def test_a_problem_file_runs_as_the_official_check_runs_it(tmp_path):
    path = tmp_path / "1_Example.py"
    path.write_text(FILE)
    with Torch() as torch:
        request = {"type": "problem", "path": str(path), "overrides": {"rows": 5}, "seed": 42, "trials": 3}
        reply = torch.ask(request)
        assert (reply["type"], reply["parameters"], len(reply["seeds"])) == ("problem", 7, 3)
        for trial in (2, 0):
            want = official(path, 5, trial).double()
            shown = torch.ask({"type": "trial", "trial": trial})
            assert (shown["shape"], shown["elements"], shown["finite"]) == ([5, 7], 35, 35)
            assert (shown["min"], shown["max"]) == (want.min().item(), want.max().item())
            assert [i["dtype"] for i in shown["inputs"]] == ["f32", "f32"]
        largest = want.max().item()

        def accepts(**candidate):
            return torch.ask({"type": "accepts", "candidate": candidate, "tolerances": [1e-2, 1e-4]})

        zeros = accepts(kind="constant", value=0.0)
        assert zeros["accepted"] == [True, False]
        assert zeros["threshold"] == largest
        # Relative to the candidate: the threshold of a constant is a share of the constant.
        far = accepts(kind="constant", value=99.0)
        assert far["accepted"] == [False, False]
        assert 0.98 < far["threshold"] < 1
        assert accepts(kind="input", index=1)["accepted"] is None
        assert accepts(kind="input", index=0)["accepted"] == [False, False]
        assert accepts(kind="function", name="relu")["threshold"] == accepts(kind="input", index=0)["threshold"]
        violations = torch.ask({"type": "violations", "tolerances": [1e-2]})
        assert violations["counts"] == [0]
        assert violations["threshold"] is not None


def test_a_file_that_is_no_problem_is_answered_with_what_is_wrong(tmp_path):
    path = tmp_path / "1_Example.py"
    with Torch() as torch:
        for text, overrides, stage, words in [
            ("def (", {}, "load", "SyntaxError"),
            ("import no_such_module", {}, "load", "no_such_module"),
            ("Model = get_inputs = print", {}, "load", "get_init_inputs"),
            (FILE, {"depth": 3}, "load", "'depth'"),
            (FILE.replace("return [n]", "return [n, n]"), {}, "model", "TypeError"),
            (FILE.replace("return [torch.rand", "return [torch.rand(3), torch.rand"), {}, "forward", "forward()"),
            (FILE.replace("+ i", "+ i, i"), {}, "result", "tuple"),
            (FILE.replace("rows = 1000", "rows = 1 << 50"), {}, "allocate", "memory"),
        ]:
            path.write_text(text)
            request = {"type": "problem", "path": str(path), "overrides": overrides, "seed": 42, "trials": 1}
            reply = torch.ask(request)
            if reply["type"] == "problem":
                reply = torch.ask({"type": "trial", "trial": 0})
            assert (reply["type"], reply["stage"]) == ("raised", stage), reply
            assert words in reply["message"], reply
        assert torch.ask({"type": "problem", **request, "path": "/nonexistent.py"})["type"] == "fault"
        assert torch.ask({"type": "violations", "tolerances": []})["type"] == "fault"


def test_a_worker_ends_with_its_parent_though_its_input_stays_open():
    starts = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()"
    input_read, input_write = os.pipe()
    command = [sys.executable, "-c", starts, sys.executable, WORKER]
    with subprocess.Popen(command, stdin=input_read, stdout=subprocess.PIPE, text=True) as parent:
        # The worker's replies go where its parent's words go; the first line is the parent's.
        worker = int(parent.stdout.readline())
        os.write(input_write, b'{"type": "evaluate"}\n')
        assert "before a `hello`" in parent.stdout.readline()
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        for _ in range(100):
            try:
                os.kill(worker, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        else:
            os.kill(worker, signal.SIGKILL)
            pytest.fail("it lives on")
    os.close(input_read)
    os.close(input_write)
