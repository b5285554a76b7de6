"""The PyTorch worker as its parent sees it: a process, JSON lines and the exchange."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from parent import WORKER, Parent, bf16_bits, bf16_values, operand

pytest.importorskip("torch", reason="skipped: no torch")

B, M, K, N = 7, 5, 3, 4
# An exchange of three batches of the largest tensor below, so that every tensor takes several requests.
SMALL = 3 * M * N * 8
LAYOUTS = {
    "contiguous": {},
    "a transposed": {"a": (0, True)},
    "b transposed": {"b": (0, True)},
    "both transposed, sliced": {"a": (1, True), "b": (1, True)},
    "offset": {"a": (4, False), "b": (4, False)},
}


def uniform(shape, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def stored(view, skip, transpose):
    """What to store so that the worker passes `view`: leading batches that must not be read, then the values."""
    values = view.transpose(0, 2, 1) if transpose else view
    return np.concatenate([np.full((skip, *values.shape[1:]), 1e3), values])


def bmm(parent, layout, dtype, backward):
    a, b, g = uniform((B, M, K), 1), uniform((B, K, N), 2), uniform((B, M, N), 3)
    values, operands = {}, []
    for name, view in [("a", a), ("b", b), *([("g", g)] if backward else [])]:
        skip, transpose = LAYOUTS[layout].get(name, (0, False))
        values[name] = stored(view, skip, transpose).astype(np.float32 if dtype == "f32" else np.float64)
        operands.append(operand(name, values[name].shape, dtype, skip, transpose))
    more = {"backward": {"upstream": "g"}} if backward else {}
    assert parent.run("torch.bmm(a, b)", operands, **more)["type"] == "ready"
    for name, value in values.items():
        parent.write(name, value)
    return a, b, g


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_batched_product_and_its_gradients_equal_float64_in_every_layout(layout):
    # A backward run computes the forward pass as well; one layout goes without.
    backward, dtype = layout != "contiguous", "f64" if layout == "offset" else "f32"
    with Parent(SMALL) as parent:
        a, b, g = bmm(parent, layout, dtype, backward)
        reply = parent.compute()
        assert reply["type"] == "computed"
        assert reply["operators"][0] == "aten::bmm"
        assert reply["seconds"] >= 0
        expected = {"out": a @ b}
        if backward:
            expected["grad_a"] = g @ b.transpose(0, 2, 1)
            expected["grad_b"] = a.transpose(0, 2, 1) @ g
        assert list(parent.outputs) == list(expected)
        for name, want in expected.items():
            assert parent.outputs[name] == {"name": name, "dtype": dtype, "shape": list(want.shape)}
            assert np.abs(parent.read_all(name) - want).max() < (1e-14 if dtype == "f64" else 1e-6)
        # Chosen batches, chosen rows and columns; and an operand as it is passed.
        got = parent.read("out", [6, 0, 3], [3, 2, 1], dtype, rows=[4, 1], cols=[2])
        assert np.abs(got - (a @ b)[[6, 0, 3]][:, [4, 1]][:, :, [2]]).max() < 1e-6
        assert np.abs(parent.read("a", [5], [1, M, K], dtype)[0] - a[5]).max() < 1e-7
        assert np.abs(parent.read("b", [1, 2], [2, K, N], dtype) - b[1:3]).max() < 1e-7
        status, out, _ = parent.quit()
        assert (status, out) == (0, "")


def test_every_dtype_travels_bit_by_bit():
    values = {d: np.arange(-12, 12).reshape(6, 4) for d in ("i8", "i16", "i32", "i64")}
    values["u8"] = np.arange(24).reshape(6, 4) + 200
    values["f16"] = np.arange(-12, 12).reshape(6, 4) / 4
    values["bf16"] = bf16_bits(np.arange(-12, 12).reshape(6, 4) / 8)
    values["bool"] = np.arange(24).reshape(6, 4) % 3 == 0
    call = "tuple(torch.flip(x, [1]) for x in (" + ", ".join(values) + "))"
    with Parent(64) as parent:
        operands = [operand(d, (6, 4), d) for d in values]
        assert parent.run(call, operands, [f"out_{d}" for d in values])["type"] == "ready"
        for d, value in values.items():
            parent.write(d, value)
        outputs = parent.compute()["outputs"]
        assert outputs == [{"name": f"out_{d}", "dtype": d, "shape": [6, 4]} for d in values]
        for d, value in values.items():
            got = parent.read_all(f"out_{d}")
            assert np.array_equal(got, value[:, ::-1].astype(got.dtype)), d
        assert bf16_values(parent.read_all("out_bf16"))[0, 3] == -1.5


def test_a_tuple_fills_the_outputs_in_order_with_scalars_and_vectors():
    x = uniform((6, 4), 5).astype(np.float32)
    with Parent() as parent:
        parent.run("(*torch.max(x, 1), x.sum(), x.t())", [operand("x", x.shape)], ["top", "where", "sum", "turned"])
        parent.write("x", x)
        shapes = [(o["dtype"], o["shape"]) for o in parent.compute()["outputs"]]
        assert shapes == [("f32", [6]), ("i64", [6]), ("f32", []), ("f32", [4, 6])]
        assert np.array_equal(parent.read("top", [5, 0], [2], "f32"), x.max(1)[[5, 0]])
        assert np.array_equal(parent.read_all("where"), x.argmax(1))
        assert abs(parent.read("sum", [0], [1], "f32")[0] - x.sum(dtype=np.float64)) < 1e-5
        assert np.array_equal(parent.read("turned", [3, 1, 2], [3, 6], "f32"), x.T[[3, 1, 2]])


def test_the_call_moves_an_operand_that_is_placed_on_the_cpu_and_sees_the_device():
    with Parent() as parent:
        reply = parent.run("x.to(device) + 1", [operand("x", (2, 2), place="cpu")], device="meta")
        assert reply["environment"]["device_name"] == "meta"
        parent.write("x", np.ones((2, 2)))
        computed = parent.compute()
        assert computed["operators"] == ["aten::_to_copy", "aten::add"]
        assert computed["outputs"][0]["shape"] == [2, 2]
        # Nothing lies behind a tensor on `meta`: reading one is an error of that stage, not of the worker.
        reply = parent.ask({"type": "read", "tensor": "out", "batches": [0], "rows": None, "cols": None})
        assert (reply["type"], reply["stage"]) == ("raised", "read")


def test_shapes_beyond_every_boundary_pass_on_meta_without_memory():
    with Parent() as parent:
        parent.run(
            "torch.bmm(a, b)",
            [operand("a", (65538, 64, 256), skip=1, transpose=True), operand("b", (65537, 64, 256))],
            device="meta",
        )
        assert parent.compute()["outputs"][0]["shape"] == [65537, 256, 256]


def test_what_the_operation_prints_and_reads_stays_off_the_protocol():
    call = "(print('to stdout', flush=True), __import__('os').write(1, b'raw\\n'), torch.ones(len(input_of())))[2]"
    call = call.replace("input_of()", "__import__('sys').stdin.read() + '123'")
    with Parent() as parent:
        assert parent.run(call, [])["environment"]["tf32"] is False
        # Nor does an interrupt at the terminal, which is the parent's to answer, become an outcome.
        parent.worker.send_signal(signal.SIGINT)
        assert parent.compute()["outputs"][0]["shape"] == [3]
        status, out, err = parent.quit()
        assert (status, out) == (0, "")
        assert "to stdout" in err
        assert "raw" in err


@pytest.mark.parametrize(
    ("call", "stage", "words"),
    [
        ("torch.bmm(a, a)", "forward", "RuntimeError: Expected size for first two dimensions"),
        ("(a * 1)[:, :1]", "backward", "Mismatch in shape"),
        ("torch.empty(1 << 60)", "allocate", "can't allocate memory"),
    ],
)
def test_an_exception_is_answered_with_its_stage_and_the_worker_lives_on(call, stage, words):
    with Parent() as parent:
        more = {"backward": {"upstream": "g"}} if stage == "backward" else {}
        parent.run(call, [operand("a", (2, 3, 4)), *([operand("g", (2, 3, 4))] if more else [])], **more)
        reply = parent.compute()
        assert (reply["type"], reply["stage"]) == ("raised", stage)
        assert words in reply["message"]
        assert "\n\n" not in reply["message"]
        assert parent.quit()[0] == 0


def test_an_allocation_that_fails_has_its_own_stage():
    with Parent() as parent:
        reply = parent.run("a", [operand("a", (1 << 50, 1 << 10))])
        assert (reply["type"], reply["stage"]) == ("raised", "allocate")


def test_an_abort_ends_the_worker_without_a_reply():
    with Parent() as parent:
        parent.run("(print('about to end'), __import__('os').abort())", [])
        assert parent.compute() is None
        _, err = parent.worker.communicate(timeout=60)
        assert parent.worker.returncode == -signal.SIGABRT
        assert "about to end" in err


def test_recording_operators_imports_nothing_inside_the_measured_call():
    call = "torch.full((1,), float('torch._dynamo' in __import__('sys').modules)) + 0 * (a @ a).sum()"
    with Parent() as parent:
        parent.run(call, [operand("a", (4, 4))])
        parent.write("a", np.ones((4, 4)))
        for _ in range(2):
            parent.compute()
            assert parent.read_all("out").tolist() == [0.0]


def test_requests_it_cannot_serve_are_faults_that_say_why():
    with Parent(64) as parent:
        good = {"call": "a", "operands": [operand("a", (4, 4))]}
        for change, words in [
            ({"version": 2}, "version 2"),
            ({"device": "nowhere"}, "the device `nowhere` cannot be used"),
            ({"call": "a b"}, "not an expression"),
            ({"call": "a.to(dtype)"}, "uses ['dtype']"),
            ({"operands": [operand("a", (4, 4), dtype="f8")]}, "`f8`"),
            ({"operands": [operand("a", (4, 4), transpose=True)]}, "2 dims instead of three"),
            ({"operands": [operand("a", (4, 4), skip=5)]}, "skips 5"),
            ({"operands": [operand("torch", (4, 4))]}, "cannot name an operand"),
            ({"call": None}, "lacks `call`"),
            ({"outputs": ["a"]}, "distinct names"),
            ({"backward": {"upstream": "g"}}, "`g` is no operand"),
            ({"exchange": {"path": "/nonexistent", "bytes": 1}}, "cannot map the exchange"),
        ]:
            reply = parent.run(**{**good, **change})
            assert (reply["type"], words in reply["message"]) == ("fault", True), reply
        for line in ["not json", "[]", '{"type": "sing"}', '{"type": "compute"}']:
            assert parent.ask(line)["type"] == "fault"

        # None of it broke the worker, and a run that failed may be asked again.
        assert parent.run(**good)["type"] == "ready"
        assert parent.run(**good)["type"] == "fault"
        for request, words in [
            ({"type": "write", "tensor": "a", "first": 2, "count": 3}, "which stores 4"),
            ({"type": "write", "tensor": "b", "first": 0, "count": 1}, "`b` is no operand"),
            ({"type": "read", "tensor": "out", "batches": [0]}, "neither an output"),
            ({"type": "read", "tensor": "a", "batches": [4]}, "batch 4"),
            ({"type": "read", "tensor": "a", "batches": [-1]}, "not a list of indices"),
            ({"type": "read", "tensor": "a", "batches": [0], "rows": [0], "cols": [0]}, "instead of three"),
            ({"type": "read", "tensor": "a", "batches": [0, 1, 2, 3, 0]}, "80 bytes for an exchange of 64"),
        ]:
            reply = parent.ask(request)
            assert (reply["type"], words in reply["message"]) == ("fault", True), reply
        parent.write("a", np.ones((4, 4)))
        assert parent.compute()["type"] == "computed"


def test_a_call_that_gives_no_tensors_is_a_fault_and_no_outcome():
    # Another kind of result at each call: a number, too many tensors, a list of numbers.
    call = "(kinds := [3, (a, a), [a.tolist()]])[int(a.add_(1)[0, 0]) - 1]"
    with Parent() as parent:
        parent.run(call, [operand("a", (2, 2))])
        parent.write("a", np.zeros((2, 2)))
        for words in ["'int'", "'Tensor', 'Tensor'", "'list'"]:
            reply = parent.compute()
            assert (reply["type"], words in reply["message"]) == ("fault", True), reply


def test_without_torch_the_first_reply_says_so(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('none here')\n")
    done = subprocess.run(
        [sys.executable, WORKER],
        input='{"type": "run"}\n{"type": "quit"}\n',
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert '"fault"' in done.stdout
    assert "none here" in done.stdout
