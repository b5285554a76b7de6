"""Kernels in a test suite.

    from assay.testing import assert_kernel

    def test_softmax():
        assert_kernel("kernels/softmax.cu", "1/23")

A kernel that is not correct fails the test with the first wrong elements, the findings by line and the command that
replays each. It needs neither a GPU nor a framework for `.cu` files, and works in pytest and unittest alike.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Any

from assay._api import StrPath, check
from assay._command import AssayError, clean
from assay._results import CheckResult

__all__ = ["KernelFailure", "UndecidedError", "assert_kernel"]


class KernelFailure(AssertionError):
    """A kernel that is not correct; `result` is the whole judgement."""

    def __init__(self, message: str, result: CheckResult) -> None:
        super().__init__(message)
        self.result = result


class UndecidedError(AssayError):
    """A kernel that Assay cannot judge, or not in time: neither a pass nor a failure. `result` says why."""

    def __init__(self, message: str, result: CheckResult) -> None:
        super().__init__(message, 4 if result.verdict == "unsupported" else 5)
        self.result = result


def assert_kernel(
    source: StrPath, problem: str, *, scope: str = "general", undecided: str = "error", **options: Any
) -> CheckResult:
    """Passes if the kernel is correct.

    Args:
        source: a path, or the text itself: a `str` with a line break is text.
        problem: level and number such as `1/23`, a name, or a folder of your own.
        scope: `general`: right at every legal extent; `official`: a kernel that is right at the problem's own extents
            alone passes as well.
        undecided: what to do where Assay cannot judge the kernel: `error` raises `UndecidedError`, `skip` skips the
            test with the reason.
        options: as `assay.check` takes them: `kernelbench`, `precision`, `suite`, `timeout`, ...

    Returns:
        The judgement of the kernel, if it passes.

    Raises:
        KernelFailure: it is not correct, or passes by a trick. A source given as text is left where its replay commands
            look for it.
        AssayError: as `assay.check`.
    """
    __tracebackhide__ = True  # pytest ends its traceback at the test's own line
    if undecided not in ("error", "skip"):
        raise AssayError(f"undecided `{undecided}`: give `error` or `skip`", 2)
    is_text = isinstance(source, str) and "\n" in source
    folder = options.pop("folder", None)
    scratch = tempfile.mkdtemp(prefix="assay-") if is_text and folder is None else None
    replays = False
    try:
        result = check(source, problem, scope=scope, folder=scratch or folder, **options)
        passed = result.reward is not None and result.reward >= 1
        replays = result.decided and not passed
    finally:
        if scratch is not None and not replays:
            shutil.rmtree(scratch, ignore_errors=True)
    if passed:
        return result
    name = str(result.document.get("file") or ("the kernel" if is_text else os.fspath(source)))
    if not result.decided:
        message = f"{name} cannot be judged for problem {problem}: {result.verdict}: {result.reason}"
        if undecided == "skip":
            raise unittest.SkipTest(clean(message))
        raise UndecidedError(message, result)
    text = str(source) if is_text else _text_of(source)
    raise KernelFailure(clean(f"{name} fails problem {problem}") + f"\n\n{result.report(text)}", result)


def _text_of(source: StrPath) -> str | None:
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
