"""The command `assay`: where it is, and one run of it.

A run gets its arguments as they are (no shell), nothing on its standard input, and ends with its caller: an interrupt,
a timeout or any other exception in the caller ends the process before it goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USAGE = 2
EXHAUSTED = 5
# Seconds that the command has to end by itself once it is told to; what an audit evaluated is committed by then.
GRACE = 3.0


class AssayError(Exception):
    """A question that has no answer: bad input, a command that is missing or failed, output that cannot be read.

    What an answer can say is never raised: a wrong kernel is a result, and so is one that Assay cannot judge.

    Attributes:
        message: what, where, and what to do.
        exit_code: the command's (2 usage or bad input, 3 a baseline failed, 4 unsupported, 5 out of time, 70 a bug of
            Assay, 74 cannot write, 130 interrupted; 128 + N where signal N ended it), None where no command was run.
        command: its words, empty where no command was run.
    """

    def __init__(self, message: str, exit_code: int | None = None, command: Sequence[str] = ()) -> None:
        super().__init__(message, exit_code, tuple(command))
        self.message = message
        self.exit_code = exit_code
        self.command = tuple(command)

    def __str__(self) -> str:
        return clean(self.message)


class CommandNotFound(AssayError):
    """There is no command `assay` where it is looked for."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        command: its words.
        code: its exit code, 128 + N where signal N ended it; None where it was stopped for its time.
        stdout: what it printed.
        stderr: what it said.
        seconds: the time that it was given, where that ended it.
    """

    command: tuple[str, ...]
    code: int | None
    stdout: str
    stderr: str
    seconds: float | None = None

    @property
    def message(self) -> str:
        """What it said of its failure."""
        if self.code is None:
            return f"stopped after {self.seconds:g} s, the timeout; give it longer, or less to do"
        text = self.stderr.strip()
        at = 0 if text.startswith("error: ") else text.find("\nerror: ") + 1
        said = text[at:].removeprefix("error: ") if text.startswith("error: ", at) else text
        if self.code > 128 and self.code != 130:
            name = _signal_name(self.code - 128)
            return f"the command was ended by {name}" + (f": {said}" if said else " and said nothing")
        return said or f"the command ended with exit code {self.code} and said nothing"

    def error(self, message: str | None = None) -> AssayError:
        """This outcome as an exception."""
        code = EXHAUSTED if self.code is None else self.code
        return AssayError(message or self.message, code, self.command)

    def document(self) -> Any:
        """What it printed, as JSON; None where it printed nothing.

        Raises:
            AssayError: it is no JSON.
        """
        if not self.stdout.strip():
            return None
        try:
            return json.loads(self.stdout)
        # Nesting beyond the interpreter's depth is no document of ours either.
        except (ValueError, RecursionError) as e:
            raise self.error(
                f"`{self.command[0]}` printed no JSON ({e}); is it this package's command? ASSAY_BIN chooses it"
            ) from None


def clean(text: str) -> str:
    """Text that a terminal may get: control characters, which may be a stranger's, as escapes; line ends stay."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_command(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def find_command() -> str:
    """The path of the command `assay`.

    It is the one that ASSAY_BIN names; or the one installed with this package; or, where the package is used from a
    checkout, that of its `target/release`; or the first on PATH.

    Raises:
        CommandNotFound: there is none.
    """
    named = os.environ.get("ASSAY_BIN")
    if named:
        # A name without a slash is looked up on PATH, as a shell does.
        found = named if os.sep in named else shutil.which(named)
        if found is None or not _is_command(Path(found)):
            raise CommandNotFound(f"ASSAY_BIN is `{named}`, which is no program; name the command `assay`, or unset it")
        return found
    suffix = ".exe" if sys.platform == "win32" else ""
    package = Path(__file__).resolve().parent
    folders = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    if f"{os.name}_user" in sysconfig.get_scheme_names():
        folders.append(Path(sysconfig.get_path("scripts", f"{os.name}_user")))
    if (package.parents[1] / "crates" / "assay").is_dir():
        folders.append(package.parents[1] / "target" / "release")
    for folder in folders:
        candidate = folder / f"assay{suffix}"
        if _is_command(candidate):
            return str(candidate)
    on_path = shutil.which("assay")
    if on_path:
        return on_path
    raise CommandNotFound(
        "the command `assay` is not installed: not named by ASSAY_BIN, not beside this Python "
        f"({folders[0]}), not on PATH; `pip install ./python` in a checkout of Assay builds and installs it"
    )


def execute(arguments: Sequence[str], timeout: float | None = None) -> Outcome:
    """Runs the command and waits for it.

    Args:
        arguments: the words after `assay`.
        timeout: seconds; then the process is ended, and the outcome has no code.

    Raises:
        CommandNotFound: there is no command.
        AssayError: it cannot be started, or an argument cannot be passed.
    """
    command = (find_command(), *arguments)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as e:
        # ValueError: a zero byte or an unpaired surrogate in an argument.
        raise AssayError(f"cannot start `{command[0]}`: {e}", None, command) from None
    with child:
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(child, signal.SIGTERM)
            return Outcome(command, None, "", "", timeout)
        except BaseException:
            _end(child, signal.SIGINT)
            raise
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    return Outcome(command, code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _end(child: subprocess.Popen[bytes], by: signal.Signals) -> None:
    """Ends a process: asks, waits, kills. Nothing of what it still prints is read."""
    try:
        child.send_signal(by)
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Also after a second interrupt while waiting; a process that has ended is left alone.
        child.kill()
