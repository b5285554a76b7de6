"""Questions to the command `assay`, answered as dataclasses.

Each function is one run of `assay … --json` in a process of its own: nothing is kept between calls, and none of them
imports a framework. What a command does is said by `assay COMMAND --help` and the project's `docs/`; here stands only
what a function adds.

Everywhere: `timeout` is in seconds, `jobs` and `seed` are the command's, and `options` are further words for the
command as they stand, such as `["--fast-math"]`.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, TypeVar, Union

from assay._command import EXHAUSTED, USAGE, AssayError, Outcome, execute
from assay._results import (
    AuditSummary,
    CheckResult,
    DoctorReport,
    Mutant,
    Problem,
    Reader,
    RunResult,
    UnreadableError,
)

T = TypeVar("T")
StrPath = Union[str, "os.PathLike[str]"]

FINE = 0
WRONG = 1
BASELINE_FAILED = 3
UNSUPPORTED = 4
BUG = 70
# Lines that Python has and CUDA C++ has not.
PYTHON = re.compile(r"^(?:import [\w., ]+|from [\w.]+ import\b.*|(?:class|def) \w+.*:)[ \t]*(?:#.*)?$", re.MULTILINE)


def check(
    source: StrPath,
    problem: str | None = None,
    *,
    kernelbench: StrPath | None = None,
    precision: str | None = None,
    suite: StrPath | None = None,
    scope: str | None = None,
    inputs: Sequence[str] = (),
    language: str | None = None,
    folder: StrPath | None = None,
    python: StrPath | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    options: Sequence[str] = (),
) -> CheckResult:
    """Judges a submission: `assay check`.

    What Assay cannot judge, or not within `timeout`, is a result with the verdict `unsupported` or `exhausted` and no
    reward. A submission is untrusted text; see the project's docs for what confines it.

    Args:
        source: a path, or the text itself: a `str` with a line break is text.
        problem: level and number such as `1/23`, a name, or a folder.
        kernelbench: a checkout of KernelBench whose problem files to use.
        precision: `fp32`, `fp16` or `bf16`.
        suite: a suite in place of the strongest that ships.
        scope: `official` (the default) or `general`: which failures cost the reward.
        inputs: ask only these recipes.
        language: `cu` or `py`, of a text; by default found from its lines.
        folder: where a text is written, as `submission.cu` or `submission.py`, and stays, so that replays work; by
            default it is removed.
        python: the interpreter with PyTorch for Python submissions; by default this one.

    Raises:
        AssayError: bad arguments, a problem that does not exist, a command that fails.
    """
    words = ["check", *_flags(problem=problem, kernelbench=kernelbench, precision=precision, suite=suite, scope=scope)]
    words += [f"--input={recipe}" for recipe in inputs]
    with _as_file(source, language, folder) as path:
        if python is None and (kernelbench is not None or path.suffix == ".py"):
            python = sys.executable
        words += [*_flags(python=python), *_common(jobs, seed), *options, "--", str(path)]
        started = time.monotonic()
        outcome = execute(words, _timeout(timeout))
        seconds = time.monotonic() - started
    if outcome.code is None:
        return CheckResult.undecided("exhausted", outcome.message, seconds)
    known = (FINE, WRONG, UNSUPPORTED, EXHAUSTED)
    document = outcome.document() if outcome.code in known else None
    if document is not None:
        return _read(outcome, lambda: CheckResult.read(Reader(document, "the document")))
    # A problem that cannot be judged at all, for example: known before there is anything to say of the submission.
    if outcome.code in (UNSUPPORTED, EXHAUSTED):
        verdict = "unsupported" if outcome.code == UNSUPPORTED else "exhausted"
        return CheckResult.undecided(verdict, " ".join(outcome.message.split()), seconds)
    raise outcome.error()


def run(
    source: StrPath,
    kernel: str,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[str] | Mapping[str, str] = (),
    shared: int | None = None,
    sanitize: bool = False,
    save: StrPath | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    options: Sequence[str] = (),
) -> RunResult:
    """Runs one kernel on the CPU device: `assay run`.

    Args:
        source: a path of a `.cu` or `.ptx` file, or CUDA C++ as text: a `str` with a line break is text.
        kernel: its name; may be an instance of a template such as `k<float,256>`.
        grid, block: extents, one to three.
        args: the kernel's parameters in order, as `"x=f32[1000]:uniform(-1,1,seed=7)"` or
            `{"x": "f32[1000]:uniform(-1,1,seed=7)"}`.
        shared: bytes of dynamic shared memory.
        sanitize: look for races, uninitialised reads and the like as well.
        save: a safetensors file for every buffer.

    Raises:
        AssayError: bad arguments, a file that does not compile, a command that fails, `timeout`.
    """
    specs = [f"{name}={spec}" for name, spec in args.items()] if isinstance(args, Mapping) else list(args)
    words = ["run", *_flags(kernel=kernel, grid=_extents(grid), block=_extents(block), shared=shared, save=save)]
    words += ["--sanitize"] if sanitize else []
    words += [f"--arg={spec}" for spec in specs]
    with _as_file(source, "cu", None) as path:
        outcome = execute([*words, *_common(jobs, seed), *options, "--", str(path)], _timeout(timeout))
    document = _document(outcome, FINE, WRONG, UNSUPPORTED, EXHAUSTED)
    return _read(outcome, lambda: RunResult.read(Reader(document, "the document")))


def mutate(
    source: StrPath,
    *,
    rule: str | None = None,
    timeout: float | None = None,
    options: Sequence[str] = (),
) -> tuple[Mutant, ...]:
    """The faults that the rules plant in a CUDA file: `assay mutate`.

    Args:
        source: a path, or the text itself: a `str` with a line break is text.
        rule: only mutants of this rule.

    Raises:
        AssayError: an unknown rule, a file that cannot be read, a command that fails, `timeout`.
    """
    with _as_file(source, "cu", None) as path:
        words = ["mutate", *_flags(rule=rule), *_common(None, None), *options, "--", str(path)]
        outcome = execute(words, _timeout(timeout))
    return _array(outcome, Mutant.read)


def problems(
    *,
    level: int | None = None,
    only: Sequence[str] = (),
    operators: Sequence[str] = (),
    techniques: Sequence[str] = (),
    refereeable: bool | None = None,
    timeout: float | None = None,
    options: Sequence[str] = (),
) -> tuple[Problem, ...]:
    """The problems there are, filtered: `assay problems`.

    Args:
        level: only this level.
        only: globs such as `level1/19*`, folders.
        operators: only those whose reference calls all of these.
        techniques: only those whose substrate uses all of these.
        refereeable: only those on which a kernel can be judged, or only the others.

    Raises:
        AssayError: a filter that names nothing, a command that fails, `timeout`.
    """
    wanted = None if refereeable is None else ("yes" if refereeable else "no")
    words = ["problems", *_flags(level=level, refereeable=wanted)]
    words += [f"--problems={pattern}" for pattern in only]
    words += [f"--operator={name}" for name in operators]
    words += [f"--technique={text}" for text in techniques]
    outcome = execute([*words, *_common(None, None), *options], _timeout(timeout))
    return _array(outcome, Problem.read)


def doctor(*, timeout: float | None = None) -> DoctorReport:
    """What is installed (NVRTC is, where it is missing), and whether every detector works: `assay doctor`.

    Raises:
        AssayError: NVRTC can be neither found nor installed, a command that fails, `timeout`.
    """
    outcome = execute(["doctor", *_common(None, None)], _timeout(timeout))
    document = _document(outcome, FINE, BUG)
    return _read(outcome, lambda: DoctorReport.read(Reader(document, "the document")))


def audit(
    problems: Sequence[str] | str | None = None,
    protocols: Sequence[StrPath] | str | None = None,
    *,
    everything: bool = False,
    checkers: Sequence[str] = (),
    kernelbench: StrPath | None = None,
    levels: Sequence[int] = (),
    ids: Sequence[int] = (),
    extents: str | None = None,
    python: StrPath | None = None,
    out: StrPath | None = None,
    resume: bool = False,
    fail_under: float | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    options: Sequence[str] = (),
) -> AuditSummary:
    """Measures checking protocols: `assay audit`. Minutes of work; an interrupted one continues with `resume`.

    Args:
        problems: globs such as `level1/19*`, or folders; by default the fourteen that the command takes.
        protocols: names or TOML files; the first is the headline's; by default all.
        everything: all problems of the catalogue.
        checkers: external checkers as shell commands in which `{dir}` is a folder of tensors.
        kernelbench, levels, ids, extents, python: problem files of a checkout of KernelBench.
        out: the run folder; by default a new one in `assay-runs`.
        resume: continue the run in `out`.
        fail_under: a percentage; below it the summary's `exit_code` is 1.

    Raises:
        AssayError: bad arguments, every baseline failed, a folder that cannot be written, a command that fails,
            `timeout`.
    """
    folder = Path(out) if out is not None else Path("assay-runs") / time.strftime("audit-%Y%m%d-%H%M%S", time.gmtime())
    if python is None and kernelbench is not None:
        python = sys.executable
    words = ["audit", *_flags(kernelbench=kernelbench, extents=extents, python=python, out=folder)]
    words += [f"--problems={pattern}" for pattern in _several(problems)]
    words += [f"--protocol={os.fspath(name)}" for name in _several(protocols)]
    words += [f"--checker={command}" for command in checkers]
    words += _flags(level=",".join(map(str, levels)) or None, ids=",".join(map(str, ids)) or None)
    words += [flag for flag, on in (("--all", everything), ("--resume", resume)) if on]
    words += _flags(fail_under=fail_under)
    outcome = execute([*words, *_common(jobs, seed), *options], _timeout(timeout))
    document = _document(outcome, FINE, WRONG, BASELINE_FAILED)
    return _read(outcome, lambda: AuditSummary.read(Reader(document, "the summary"), str(folder), outcome.code))


def read_summary(folder: StrPath) -> AuditSummary:
    """The summary of a finished audit in this run folder.

    Raises:
        AssayError: there is none, or it cannot be read.
    """
    path = Path(folder) / "summary.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return AuditSummary.read(Reader(document, "the summary"), str(folder), None)
    except (OSError, ValueError, RecursionError, UnreadableError) as e:
        raise AssayError(f"cannot read the audit in `{folder}`: {e}; give the folder of a finished audit") from None


def _flags(**named: object) -> list[str]:
    """`--name=value` for what is given; a value that begins with a dash stays a value."""
    given = ((name, value) for name, value in named.items() if value is not None)
    return [f"--{name.replace('_', '-')}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for name, v in given]


def _common(jobs: int | None, seed: int | None) -> list[str]:
    return ["--json", "--quiet", *_flags(jobs=jobs, seed=seed)]


def _several(given: Sequence[Any] | str | None) -> list[Any]:
    """One name is a sequence of one."""
    if given is None:
        return []
    return [given] if isinstance(given, (str, os.PathLike)) else list(given)


def _extents(given: int | Sequence[int]) -> str:
    return str(given) if isinstance(given, int) else ",".join(str(n) for n in given)


def _timeout(seconds: float | None) -> float | None:
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise AssayError(f"timeout {seconds}: give a positive number of seconds, or None", USAGE)
    return seconds


@contextmanager
def _as_file(source: StrPath, language: str | None, folder: StrPath | None) -> Iterator[Path]:
    """The file to judge: the source's own, or one that has its text."""
    if not isinstance(source, str) or "\n" not in source:
        path = Path(source)
        if not path.exists():
            raise AssayError(f"no file `{path}`; a source given as text has a line break", USAGE)
        yield path
        return
    if language not in (None, "cu", "py"):
        raise AssayError(f"language `{language}`: give `cu` or `py`", USAGE)
    name = f"submission.{language or ('py' if PYTHON.search(source) else 'cu')}"
    try:
        text = source.encode("utf-8")
        if folder is not None:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    except (OSError, UnicodeEncodeError) as e:
        raise AssayError(f"cannot write the source: {e}", USAGE) from None
    if folder is not None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="assay-") as scratch:
        path = Path(scratch) / name
        path.write_bytes(text)
        yield path


def _document(outcome: Outcome, *codes: int) -> Any:
    """What the command printed, if it ended with one of these codes.

    Raises:
        AssayError: it did not, or printed nothing.
    """
    document = outcome.document() if outcome.code in codes else None
    if document is None:
        raise outcome.error()
    return document


def _array(outcome: Outcome, read: Callable[[Reader], T]) -> tuple[T, ...]:
    document = _document(outcome, FINE)
    return _read(outcome, lambda: Reader({"all": document}, "the document").several("all", read))


def _read(outcome: Outcome, read: Callable[[], T]) -> T:
    """A result from its document.

    Raises:
        AssayError: the document is not what this package expects.
    """
    try:
        return read()
    except UnreadableError as e:
        version = "is it of another version than this package? ASSAY_BIN chooses the command"
        raise outcome.error(f"cannot read what `{outcome.command[0]}` printed: {e}; {version}") from None
