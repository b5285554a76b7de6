"""How the API runs the command: with commands that are missing, die, hang, or print what no command of ours would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import pytest

import assay
from assay import _command
from assay.testing import KernelFailure, UndecidedError, assert_kernel

CORRECT = {
    "verdict": "correct",
    "official": {"passes": None, "extents": "desk", "threshold": 0.0},
    "suite": {"inputs": 1, "failed": 0},
    "findings": [],
    "failing_inputs": [],
    "tricks": [],
    "reward": 1.0,
    "reason": "1 input passes",
    "seconds": 0.1,
}
KERNEL = "__global__ void k() {}\n"


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Puts a command of these lines of Python in place of `assay`."""

    def put(code):
        path = tmp_path / "assay"
        path.write_text(f"#!{sys.executable}\nimport json, os, signal, sys, time\n{code}\n", encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("ASSAY_BIN", str(path))
        return path

    return put


def printing(document, code=0):
    return f"sys.stdout.write({json.dumps(json.dumps(document))}); sys.exit({code})"


def test_a_missing_command_is_one_clear_error(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_BIN", str(tmp_path / "nosuch"))
    with pytest.raises(assay.CommandNotFound, match=r"ASSAY_BIN is `.+nosuch`"):
        assay.check(KERNEL, "1/19")
    monkeypatch.delenv("ASSAY_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_command, "_is_command", lambda path: False)
    with pytest.raises(assay.CommandNotFound, match=r"pip install ./python") as caught:
        assay.problems()
    assert caught.value.exit_code is None


def test_the_command_is_the_one_named_then_the_installed_one_then_the_one_on_path(monkeypatch, tmp_path, command):
    named = command("")
    assert assay.find_command() == str(named)
    monkeypatch.delenv("ASSAY_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    installed = Path(assay.find_command())
    assert installed != named
    assert installed.is_file()
    monkeypatch.setattr(_command, "_is_command", lambda path: path.parent == tmp_path)
    assert assay.find_command() == str(named)
    monkeypatch.setenv("ASSAY_BIN", "assay")
    assert assay.find_command() == str(named)


def test_arguments_reach_the_command_as_they_are(command, tmp_path):
    # Neither a shell nor the command's own parser takes a value for something else.
    log = tmp_path / "arguments"
    command(f"open({str(log)!r}, 'w').write(json.dumps(sys.argv[1:]))\n{printing(CORRECT)}")
    assay.check(
        KERNEL,
        "--all; rm -rf $HOME",
        suite="-s",
        scope="general",
        precision="fp16",
        kernelbench=tmp_path,
        python="p",
        inputs=["uniform(-1,1)#0"],
        jobs=3,
        seed=7,
        options=["--fast-math"],
    )
    words = json.loads(log.read_text())
    assert words[:-1] == [
        "check",
        "--problem=--all; rm -rf $HOME",
        f"--kernelbench={tmp_path}",
        "--precision=fp16",
        "--suite=-s",
        "--scope=general",
        "--input=uniform(-1,1)#0",
        "--python=p",
        "--json",
        "--quiet",
        "--jobs=3",
        "--seed=7",
        "--fast-math",
        "--",
    ]


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n", ".py"),
        ('"""doc"""\nfrom torch.utils.cpp_extension import load_inline  # CUDA\nsource = """\nclass X {};"""\n', ".py"),
        ("class ModelNew(Module):\n    pass\n", ".py"),
        (KERNEL, ".cu"),
        ("#include <cuda_fp16.h>\nimport std;\nclass X : public Y {\n};\nstruct Z {};\n", ".cu"),
        ("\n", ".cu"),
    ],
)
def test_the_language_of_a_text_is_found_from_its_lines(command, tmp_path, text, suffix):
    log = tmp_path / "arguments"
    copy = f"open({str(log)!r}, 'w').write(json.dumps([sys.argv[-1], open(sys.argv[-1], newline='').read()]))"
    command(f"{copy}\n{printing(CORRECT)}")
    assay.check(text, "1/19")
    path, content = json.loads(log.read_text())
    assert path.endswith(f"submission{suffix}")
    assert content == text
    other = "cu" if suffix == ".py" else "py"
    assay.check(text, "1/19", language=other)
    assert json.loads(log.read_text())[0].endswith(f"submission.{other}")


def test_python_submissions_run_with_this_interpreter_unless_told_otherwise(command, tmp_path):
    log = tmp_path / "arguments"
    command(f"open({str(log)!r}, 'w').write(json.dumps(sys.argv[1:]))\n{printing(CORRECT)}")
    assay.check("import torch\n", "1/19")
    assert f"--python={sys.executable}" in json.loads(log.read_text())
    assay.check(KERNEL, "1/19")
    assert not any(w.startswith("--python") for w in json.loads(log.read_text()))


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("nosuch.cu", {}, "no file `nosuch.cu`"),
        (KERNEL, {"language": "fortran"}, "give `cu` or `py`"),
        (KERNEL, {"timeout": 0}, "positive number"),
        (KERNEL, {"timeout": float("nan")}, "positive number"),
        (KERNEL + "\udc80", {}, "cannot write the source"),
        (KERNEL, {"folder": os.devnull}, "cannot write the source"),
        (KERNEL, {"suite": "a\0b"}, "cannot start"),
    ],
)
def test_arguments_that_cannot_be_are_errors_before_anything_runs(command, source, options, message):
    command("os.kill(os.getppid(), signal.SIGKILL)")
    with pytest.raises(assay.AssayError, match=message):
        assay.check(source, "1/19", **options)


@pytest.mark.parametrize(
    ("code", "exit_code", "message"),
    [
        (
            "sys.stderr.write('warning: w\\nerror: no such\\n  help: do this\\n'); sys.exit(2)",
            2,
            "^no such",
        ),
        ("sys.stderr.write('error: a bug\\n'); sys.exit(70)", 70, "^a bug$"),
        ("sys.exit(74)", 74, "exit code 74 and said nothing"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "ended by SIGKILL"),
        ("pass", 0, "exit code 0 and said nothing"),
        ("print('hello')", 0, "printed no JSON"),
        ("sys.stdout.write('[' * 200000)", 0, "printed no JSON"),
        ("sys.stdout.buffer.write(bytes(range(256)) * 100)", 0, "printed no JSON"),
        ("print('3')", 0, "the document is no object"),
        ("print('{}')", 0, "has no `verdict`"),
    ],
)
def test_a_command_that_fails_or_prints_something_else_is_an_error(command, code, exit_code, message):
    command(code)
    with pytest.raises(assay.AssayError, match=message) as caught:
        assay.check(KERNEL, "1/19")
    assert caught.value.exit_code == exit_code


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("verdict", "splendid"),
        ("verdict", None),
        ("official", []),
        ("suite", {"inputs": "1", "failed": 0}),
        ("suite", {"inputs": True, "failed": 0}),
        ("findings", {}),
        ("findings", [{"kind": "oob_read"}]),
        ("findings", [{"kind": "oob_read", "message": "m", "thread": {"block": "0"}}]),
        ("failing_inputs", [{"recipe": "r", "threshold": "big", "first_wrong": None, "replay": "x"}]),
        ("tricks", [1]),
        ("reward", "1"),
        ("seconds", 10**400),
    ],
)
def test_a_value_of_another_type_than_the_contracts_is_an_error(command, key, value):
    command(printing({**CORRECT, key: value}))
    with pytest.raises(assay.AssayError, match=f"{key}|kind|message|block|inputs|threshold"):
        assay.check(KERNEL, "1/19")


def test_keys_that_are_new_do_no_harm_and_are_in_the_document(command):
    command(printing({**CORRECT, "later": [1]}))
    assert assay.check(KERNEL, "1/19").document["later"] == [1]


@pytest.mark.parametrize(("code", "verdict"), [(4, "unsupported"), (5, "exhausted")])
def test_no_answer_is_a_result(command, code, verdict):
    command(f"sys.stderr.write('error: `x`\\n  cannot be done\\n'); sys.exit({code})")
    result = assay.check(KERNEL, "1/19")
    assert (result.verdict, result.reward, result.reason) == (verdict, None, "`x` cannot be done")
    with pytest.raises(assay.AssayError) as caught:
        assay.mutate(KERNEL)
    assert caught.value.exit_code == code


def test_a_kernel_without_answer_is_an_error_or_a_skipped_test(command):
    command("sys.stderr.write('error: no such opcode\\n'); sys.exit(4)")
    with pytest.raises(UndecidedError, match="no such opcode") as caught:
        assert_kernel(KERNEL, "1/19")
    assert not isinstance(caught.value, AssertionError)
    with pytest.raises(unittest.SkipTest, match="no such opcode"):
        assert_kernel(KERNEL, "1/19", undecided="skip")
    with pytest.raises(assay.AssayError, match="give `error` or `skip`"):
        assert_kernel(KERNEL, "1/19", undecided="pass")


def test_hostile_text_is_data_and_no_terminal_obeys_it(command):
    hostile = "\x1b]0;owned\x07\r\u202egnorw {0.__class__} %s\x9b31m"
    finding = {"kind": "trap", "message": hostile, "line": 1, "file": "submission.cu", "replay": hostile}
    wrong = {"output": hostile, "at": [1], "got": "NaN", "want": "-Infinity"}
    failing = {"recipe": hostile, "threshold": "Infinity", "first_wrong": wrong, "replay": hostile}
    document = {
        **CORRECT,
        "verdict": "wrong",
        "reward": 0.0,
        "reason": hostile,
        "tricks": [hostile],
        "log": hostile,
        "findings": [finding],
        "failing_inputs": [failing],
    }
    command(printing(document, 1))
    result = assay.check(KERNEL, "1/19")
    assert result.findings[0].message == result.reason == result.log == hostile
    assert result.failing_inputs[0].threshold == float("inf")
    assert result.failing_inputs[0].first_wrong.got != result.failing_inputs[0].first_wrong.got
    with pytest.raises(KernelFailure) as caught:
        assert_kernel(KERNEL + hostile, "1/19", folder=Path(os.environ["ASSAY_BIN"]).parent)
    for text in (str(result), str(caught.value), str(assay.AssayError(hostile))):
        assert "owned" in text
        assert all(c == "\n" or c.isprintable() for c in text), repr(text)


def wait_for(path, seconds=20):
    end = time.monotonic() + seconds
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, f"no {path}"
        time.sleep(0.01)
    return path.read_text()


def is_gone(pid, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_interrupt_ends_the_command(command, tmp_path, stubborn):
    pid = tmp_path / "pid"
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n" if stubborn else ""
    command(f"{ignore}open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    # A shell that starts the tests in the background ignores SIGINT for them, and Python then leaves it ignored.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heed}; import assay; assay._command.GRACE = 0.2; assay.check({KERNEL!r}, '1/19')"
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    child = int(wait_for(pid))
    parent.send_signal(signal.SIGINT)
    _, err = parent.communicate(timeout=20)
    assert "KeyboardInterrupt" in err
    assert is_gone(child)


def test_a_timeout_ends_the_command_even_one_that_ignores_it(command, tmp_path, monkeypatch):
    monkeypatch.setattr(_command, "GRACE", 0.2)
    pid = tmp_path / "pid"
    command(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    result = assay.check(KERNEL, "1/19", timeout=1)
    assert result.verdict == "exhausted"
    assert is_gone(int(pid.read_text()))
    with pytest.raises(assay.AssayError, match="stopped after 1 s") as caught:
        assay.mutate(KERNEL, timeout=1)
    assert caught.value.exit_code == 5


def test_a_command_that_prints_without_end_of_line_and_much_is_read_whole(command):
    command(printing({**CORRECT, "log": "x" * 3_000_000}) + "\nsys.stderr.write('y' * 3000000)")
    assert len(assay.check(KERNEL, "1/19").log) == 3_000_000
