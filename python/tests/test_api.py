"""The API and the command itself, over files of the repository's `testdata/`."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

import assay
from assay.testing import KernelFailure, UndecidedError, assert_kernel

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
RELU = TESTDATA / "check" / "relu_as_people_write_it.cu"
SCALE = """
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 2 * x[i];
    if (i == 0) printf("scaled\\n");
}
"""


def said(path):
    """What a file of `testdata/check` says of itself: the lines `// key = "value"` at its top."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(m.groups() for m in map(re.compile(r'// (\w+) = "?([^"]*)"?$').match, lines) if m)


def one_of_each_verdict():
    """The first file of `testdata/check` of every verdict."""
    files = {}
    for path in sorted((TESTDATA / "check").glob("*.cu"), reverse=True):
        files[said(path)["verdict"]] = path
    return sorted(files.values())


@pytest.mark.parametrize("path", one_of_each_verdict(), ids=lambda p: said(p)["verdict"])
def test_a_file_gets_the_verdict_and_the_reward_of_the_command(path):
    expected = said(path)
    result = assay.check(path, expected["problem"])
    assert result.verdict == expected["verdict"]
    exits = {"0": 1.0, "1": 0.0, "4": None, "5": None}
    assert result.reward == exits[expected["exit"]]
    assert result.decided == (result.reward is not None)
    assert result.reason
    assert result.seconds > 0
    assert result.document["file"] == str(path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.verdict = "correct"


def test_text_is_judged_as_its_file_is():
    text = (TESTDATA / "check" / "relu_without_clamp.cu").read_text(encoding="utf-8")
    result = assay.check(text, "1/19")
    assert result.verdict == "wrong"
    failing = result.failing_inputs[0]
    assert failing.first_wrong.got < 0
    assert failing.first_wrong.want == 0
    assert failing.first_wrong.wrong_elements > 0
    shown = [f for f in result.failing_inputs if f"is {f.first_wrong.got:.6g}, not 0;" in str(result)]
    # What decided the verdict is shown first.
    assert shown
    assert all(f.own_extents for f in shown)
    assert failing.recipe in failing.replay
    assert not Path(result.document["file"]).exists()


def test_a_replay_of_kept_text_shows_the_same_again(tmp_path):
    text = (TESTDATA / "check" / "relu_without_clamp.cu").read_text(encoding="utf-8")
    result = assay.check(text, "1/19", folder=tmp_path)
    recipe = result.failing_inputs[0].recipe
    again = assay.check(tmp_path / "submission.cu", "1/19", inputs=[recipe])
    assert [f.recipe for f in again.failing_inputs] == [recipe]
    assert again.failing_inputs[0].first_wrong == result.failing_inputs[0].first_wrong


def test_the_scope_decides_whether_other_extents_cost_the_reward():
    path = TESTDATA / "check" / "relu_multiples_of_32.cu"
    assert assay.check(path, "1/19").reward == 1
    assert assay.check(path, "1/19", scope="general").reward == 0


def test_a_check_that_takes_too_long_is_exhausted():
    result = assay.check(TESTDATA / "check" / "relu_endless.cu", "1/19", timeout=0.05)
    assert (result.verdict, result.reward) == ("exhausted", None)
    assert "0.05 s" in result.reason


def test_bad_questions_are_errors_that_say_what_to_do():
    with pytest.raises(assay.AssayError, match="no problem matches `1/999`") as caught:
        assay.check(RELU, "1/999")
    assert caught.value.exit_code == 2
    assert caught.value.command[1] == "check"
    with pytest.raises(assay.AssayError, match="--scope"):
        assay.check(RELU, "1/19", scope="nowhere")
    with pytest.raises(assay.AssayError, match="--scope"):
        assay.check(RELU, "1/19", options=["--scope=nowhere"])


def test_a_kernel_runs_with_its_outputs_findings_and_prints(tmp_path):
    save = tmp_path / "buffers.safetensors"
    args = {"x": "f32[40]:arange", "y": "f32[40]:uninit", "n": "i32:40"}
    result = assay.run(SCALE, "scale", grid=1, block=(64, 1, 1), args=args, save=save, sanitize=True)
    assert result.status == "finding"
    kinds = {f.kind: f for f in result.findings}
    assert kinds["oob_read"].line == 4
    assert kinds["oob_read"].at.thread == (40, 0, 0)
    assert kinds["oob_read"].buffer == "x"
    listed = [f"{name}={spec}" for name, spec in {**args, "n": "i32:39"}.items()]
    result = assay.run(SCALE, "scale", grid=1, block=64, args=listed, seed=3)
    assert (result.status, result.seed) == ("ok", 3)
    assert result.printf == ("scaled\n",)
    assert result.outputs["y"].shape == (40,)
    assert result.outputs["y"].head[:3] == (0, 2, 4)
    assert save.stat().st_size > 320


def test_a_kernel_that_does_not_exist_is_an_error():
    with pytest.raises(assay.AssayError, match="no kernel `nosuch`"):
        assay.run(SCALE, "nosuch", grid=1, block=1)


def test_the_mutants_of_a_text_are_those_of_its_rule():
    mutants = assay.mutate(SCALE)
    assert len({m.id for m in mutants}) == len(mutants) > 3
    rule = mutants[0].rule
    assert assay.mutate(SCALE, rule=rule) == tuple(dataclasses.replace(m) for m in mutants if m.rule == rule)
    assert all(m.diff.startswith("--- ") for m in mutants)
    with pytest.raises(assay.AssayError, match="unknown rule"):
        assay.mutate(SCALE, rule="NoSuchRule")


def test_problems_are_those_that_fit():
    every = assay.problems()
    assert len({p.key for p in every}) == len(every) == 200
    softmax = assay.problems(level=1, operators=["softmax"], refereeable=True)
    assert "1/23" in [p.key for p in softmax]
    assert all(p.level == 1 and "softmax" in p.document["operators"] for p in softmax)
    assert [p.key for p in assay.problems(only=["level1/19_*"])] == ["1/19"]
    with pytest.raises(assay.AssayError, match="near it is `softmax`"):
        assay.problems(operators=["sofmtax"])


def test_the_doctor_finds_every_detector_at_work():
    report = assay.doctor()
    assert report.sound
    assert report.assay == assay.__version__
    assert "race_shared" in [d.planted for d in report.detectors]


def test_an_audit_gives_the_figures_of_its_summary(tmp_path):
    out = tmp_path / "run"
    problem = str(TESTDATA / "e2e" / "problems" / "add_clamp")
    summary = assay.audit(problem, "kernelbench", out=out)
    assert (summary.folder, summary.exit_code) == (str(out), 0)
    p = summary.pipeline
    assert p.problems == 1
    assert p.distinct == p.generated - p.noncompiling - p.duplicate_image - p.equivalent
    first = summary.protocols[0]
    assert first.name == "kernelbench"
    assert summary.protocol("kernelbench") == first
    assert first.detected_percent == pytest.approx(100 * first.detected / first.witnessed)
    assert sum(f.witnessed for f in summary.families) >= p.witnessed > 0
    assert summary.suites[0].budget == 1
    assert summary.environment["assay"] == assay.__version__
    again = assay.read_summary(out)
    assert again == dataclasses.replace(summary, exit_code=None)
    again = assay.audit(problem, "kernelbench", out=out, resume=True, fail_under=100)
    assert again.exit_code == 1
    assert again.pipeline == p
    with pytest.raises(assay.AssayError, match="finished audit"):
        assay.read_summary(tmp_path)


def test_a_correct_kernel_passes_in_a_test_suite():
    assert assert_kernel(RELU, "1/19").verdict == "correct"


def test_a_wrong_kernel_fails_with_its_first_wrong_elements_and_a_replay():
    text = (TESTDATA / "check" / "relu_without_clamp.cu").read_text(encoding="utf-8")
    with pytest.raises(KernelFailure) as caught:
        assert_kernel(text, "1/19")
    message = str(caught.value)
    assert "fails problem 1/19" in message
    assert re.search(r"y\[[\d,]+\] is -[\d.e-]+, not 0; [\d,]+ of [\d,]+ elements are wrong", message)
    words = re.search(r"replay: assay check (\S+) --problem 1/19 --input '?([^'\n]+)", message)
    file, recipe = Path(words[1]), words[2]
    # What a person does with the replay: the file is still there.
    assert assay.check(file, "1/19", inputs=[recipe]).verdict == "wrong"
    file.unlink()
    file.parent.rmdir()


def test_a_kernel_with_undefined_behaviour_fails_with_the_guilty_line():
    path = TESTDATA / "check" / "relu_reads_fresh_shared_memory.cu"
    with pytest.raises(KernelFailure) as caught:
        assert_kernel(path, "1/19")
    finding = caught.value.result.findings[0]
    guilty = path.read_text(encoding="utf-8").splitlines()[finding.line - 1].strip()
    assert f"line {finding.line}: {finding.kind}" in str(caught.value)
    assert guilty in str(caught.value)


def test_a_kernel_that_is_right_at_official_extents_alone_passes_where_that_is_asked():
    path = TESTDATA / "check" / "relu_multiples_of_32.cu"
    assert assert_kernel(path, "1/19", scope="official").verdict == "not_general"
    with pytest.raises(KernelFailure, match="not_general"):
        assert_kernel(path, "1/19")


def test_a_kernel_that_cannot_be_judged_neither_passes_nor_fails():
    path = TESTDATA / "check" / "relu_endless.cu"
    with pytest.raises(UndecidedError, match="exhausted") as caught:
        assert_kernel(path, "1/19")
    assert not isinstance(caught.value, AssertionError)
    assert caught.value.exit_code == 5


def test_a_question_imports_no_framework():
    code = (
        "import sys, assay; from assay.testing import assert_kernel; "
        f"assert_kernel({str(RELU)!r}, '1/19'); sys.exit(bool({{'torch', 'numpy'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
