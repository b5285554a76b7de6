"""What the command prints as JSON, as frozen dataclasses.

The names are those of the JSON. Every result keeps the whole object in `document`: what this module does not name is
there. Numbers that JSON lacks (`"NaN"`, `"Infinity"`) are floats here. Text is data: kernels, file names and messages
may be a stranger's, and only `str()` of a result makes them safe for a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar

from assay._command import clean

T = TypeVar("T")

VERDICTS = (
    "correct",
    "wrong",
    "undefined_behaviour",
    "not_general",
    "rejected",
    "crashed",
    "unsupported",
    "exhausted",
)
# Findings and failing inputs that a report shows; a result has all.
SHOWN = 5


class UnreadableError(Exception):
    """A document that is not what the contract says."""


class Reader:
    """A JSON object whose values are read with the type that the contract gives them.

    Every method raises `UnreadableError` naming the key; those that begin with `maybe_` take null and a missing key.
    """

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise UnreadableError(f"{where} is no object")
        self.value: dict[str, Any] = value
        self.where = where

    def _get(self, key: str, what: str, ok: Callable[[Any], bool]) -> Any:
        if key not in self.value:
            raise UnreadableError(f"{self.where} has no `{key}`")
        if not ok(self.value[key]):
            raise UnreadableError(f"`{key}` of {self.where} is no {what}")
        return self.value[key]

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None

    def text(self, key: str) -> str:
        return str(self._get(key, "text", lambda v: isinstance(v, str)))

    def integer(self, key: str) -> int:
        return int(self._get(key, "integer", lambda v: isinstance(v, int) and not isinstance(v, bool)))

    def boolean(self, key: str) -> bool:
        return bool(self._get(key, "boolean", lambda v: isinstance(v, bool)))

    def number(self, key: str) -> float:
        def is_number(v: Any) -> bool:
            return (isinstance(v, (int, float)) and not isinstance(v, bool)) or v in ("NaN", "Infinity", "-Infinity")

        try:
            return float(self._get(key, "number", is_number))
        except OverflowError:  # an integer beyond float64
            raise UnreadableError(f"`{key}` of {self.where} is too large") from None

    def mapping(self, key: str) -> dict[str, Any]:
        return dict(self._get(key, "object", lambda v: isinstance(v, dict)))

    def within(self, key: str) -> Reader:
        return Reader(self._get(key, "object", lambda v: isinstance(v, dict)), f"`{key}` of {self.where}")

    def several(self, key: str, read: Callable[[Reader], T]) -> tuple[T, ...]:
        values = self._get(key, "array", lambda v: isinstance(v, list))
        return tuple(read(Reader(v, f"`{key}[{k}]` of {self.where}")) for k, v in enumerate(values))

    def texts(self, key: str) -> tuple[str, ...]:
        def are(v: Any) -> bool:
            return isinstance(v, list) and all(isinstance(t, str) for t in v)

        return tuple(self._get(key, "array of texts", are))

    def numbers(self, key: str) -> tuple[int, ...]:
        def are(v: Any) -> bool:
            return isinstance(v, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in v)

        return tuple(self._get(key, "array of integers", are))

    def maybe(self, read: Callable[[str], T], key: str) -> T | None:
        return read(key) if self.has(key) else None


def _rest() -> Any:
    """The field that holds the whole object; it takes no part in comparisons and is not printed."""
    return field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Access:
    """One side of a finding: who, and on which line. Threads are (x, y, z)."""

    access: str | None
    block: tuple[int, ...] | None
    thread: tuple[int, ...] | None
    line: int | None
    file: str | None

    @classmethod
    def read(cls, r: Reader) -> Access:
        at = r.within("thread") if r.has("thread") else Reader({}, "nothing")
        return cls(
            access=r.maybe(r.text, "access"),
            block=at.maybe(at.numbers, "block"),
            thread=at.maybe(at.numbers, "thread"),
            line=r.maybe(r.integer, "line"),
            file=r.maybe(r.text, "file"),
        )


@dataclass(frozen=True)
class Finding:
    """What the device saw.

    Attributes:
        kind: such as `oob_read`, `race_shared`, `uninit_read_global`, `barrier_divergence`.
        message: in words.
        space, buffer, offset_bytes, size_bytes: where; None where a finding has no such place.
        at: who, and on which line.
        other: the other side of a race.
        kernel: the kernel that ran, as an instance of its template.
        recipe: the input on which it was seen first, in `check`.
        own_extents: is that at the problem's own extents, in `check`?
        replay: a command that shows it again, in `check`.
    """

    kind: str
    message: str
    space: str | None
    buffer: str | None
    offset_bytes: int | None
    size_bytes: int | None
    at: Access
    other: Access | None
    kernel: str | None
    recipe: str | None
    own_extents: bool
    replay: str | None
    document: Mapping[str, Any] = _rest()

    @property
    def line(self) -> int | None:
        """The line, in the file that was judged unless `at.file` says another; from 1."""
        return self.at.line

    @classmethod
    def read(cls, r: Reader) -> Finding:
        return cls(
            kind=r.text("kind"),
            message=r.text("message"),
            space=r.maybe(r.text, "space"),
            buffer=r.maybe(r.text, "buffer"),
            offset_bytes=r.maybe(r.integer, "offset_bytes"),
            size_bytes=r.maybe(r.integer, "size_bytes"),
            at=Access.read(r),
            other=Access.read(r.within("other")) if r.has("other") else None,
            kernel=r.maybe(r.text, "kernel"),
            recipe=r.maybe(r.text, "recipe"),
            own_extents=r.boolean("own_extents") if r.has("own_extents") else True,
            replay=r.maybe(r.text, "replay"),
            document=r.value,
        )


@dataclass(frozen=True)
class Official:
    """The official protocol's answer.

    Attributes:
        passes: does it accept? None where the official extents were not reached.
        extents: `official`, `sampled` or `desk`: what was asked.
        threshold: smallest atol = rtol that would accept what was asked; None where nothing was evaluated.
        passes_there: does it accept at those extents? None where it was not asked whole.
        tolerance: its atol = rtol.
    """

    passes: bool | None
    extents: str
    threshold: float | None
    passes_there: bool | None
    tolerance: float | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> Official:
        return cls(
            passes=r.maybe(r.boolean, "passes"),
            extents=r.text("extents"),
            threshold=r.maybe(r.number, "threshold"),
            passes_there=r.maybe(r.boolean, "passes_there"),
            tolerance=r.maybe(r.number, "tolerance"),
            document=r.value,
        )


@dataclass(frozen=True)
class Suite:
    """The suite's answer: inputs asked, and valid ones that fail."""

    inputs: int
    failed: int
    name: str | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> Suite:
        return cls(r.integer("inputs"), r.integer("failed"), r.maybe(r.text, "name"), r.value)


@dataclass(frozen=True)
class WrongElement:
    """The first element out of tolerance, in row-major order.

    Attributes:
        output: which output.
        index: its row-major index; `at` is the same by dim.
        got, want: what the submission computes, and the float32 reference.
        wrong_elements, elements: how many are out of tolerance, and how many there are.
    """

    output: str | None
    index: int | None
    at: tuple[int, ...]
    got: float | None
    want: float | None
    wrong_elements: int | None
    elements: int | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> WrongElement:
        return cls(
            output=r.maybe(r.text, "output"),
            index=r.maybe(r.integer, "index"),
            at=r.numbers("at") if r.has("at") else (),
            got=r.maybe(r.number, "got"),
            want=r.maybe(r.number, "want"),
            wrong_elements=r.maybe(r.integer, "wrong_elements"),
            elements=r.maybe(r.integer, "elements"),
            document=r.value,
        )

    def __str__(self) -> str:
        at = ",".join(str(i) for i in self.at) or ("?" if self.index is None else str(self.index))
        words = f"{self.output or 'output'}[{at}] is {_value(self.got)}, not {_value(self.want)}"
        if self.wrong_elements is not None and self.elements is not None:
            words += f"; {self.wrong_elements:,} of {self.elements:,} elements are wrong"
        return clean(words)


@dataclass(frozen=True)
class FailingInput:
    """An input that counts against the submission.

    Attributes:
        recipe: how the input is made; replayable from its text.
        threshold: smallest atol = rtol that would accept the output.
        first_wrong: None where there was no output; `message` says what ended the run.
        replay: a command that judges this input alone.
        own_extents: is it at the problem's own extents?
    """

    recipe: str
    threshold: float | None
    first_wrong: WrongElement | None
    replay: str
    own_extents: bool
    message: str | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> FailingInput:
        return cls(
            recipe=r.text("recipe"),
            threshold=r.maybe(r.number, "threshold"),
            first_wrong=WrongElement.read(r.within("first_wrong")) if r.has("first_wrong") else None,
            replay=r.text("replay"),
            own_extents=r.boolean("own_extents") if r.has("own_extents") else True,
            message=r.maybe(r.text, "message"),
            document=r.value,
        )


@dataclass(frozen=True)
class CheckResult:
    """The judgement of one submission; `str()` of it is a report in lines.

    Attributes:
        verdict: `correct`, `wrong`, `undefined_behaviour`, `not_general`, `rejected` or `crashed`; or `unsupported` or
            `exhausted`, which say nothing about the submission.
        official: the official protocol's answer.
        suite: the suite's.
        findings: what the detectors saw, each once, those at the problem's own extents first.
        failing_inputs: the inputs that count against it, in the order asked.
        tricks: ways to pass without doing the work that it was seen to use.
        reward: 1 where it does what the scope asks, 0 where it does not, None for `unsupported` and `exhausted`.
        reason: why, in one line.
        seconds: wall time of the judgement. Speed of the submission is not measured.
        log: the compiler's, where it refused the submission.
    """

    verdict: str
    official: Official
    suite: Suite
    findings: tuple[Finding, ...]
    failing_inputs: tuple[FailingInput, ...]
    tricks: tuple[str, ...]
    reward: float | None
    reason: str
    seconds: float
    log: str | None
    document: Mapping[str, Any] = _rest()

    @property
    def decided(self) -> bool:
        """Does the verdict say something about the submission?"""
        return self.verdict not in ("unsupported", "exhausted")

    @classmethod
    def read(cls, r: Reader) -> CheckResult:
        verdict = r.text("verdict")
        if verdict not in VERDICTS:
            raise UnreadableError(f"`verdict` of {r.where} is none of {', '.join(VERDICTS)}")
        return cls(
            verdict=verdict,
            official=Official.read(r.within("official")),
            suite=Suite.read(r.within("suite")),
            findings=r.several("findings", Finding.read),
            failing_inputs=r.several("failing_inputs", FailingInput.read),
            tricks=r.texts("tricks"),
            reward=r.maybe(r.number, "reward"),
            reason=r.text("reason"),
            seconds=r.number("seconds"),
            log=r.maybe(r.text, "log"),
            document=r.value,
        )

    @classmethod
    def undecided(cls, verdict: str, reason: str, seconds: float) -> CheckResult:
        """A judgement that ended before there was a document."""
        document: dict[str, Any] = {
            "verdict": verdict,
            "official": {"passes": None, "extents": "desk", "threshold": None},
            "suite": {"inputs": 0, "failed": 0},
            "findings": [],
            "failing_inputs": [],
            "tricks": [],
            "reward": None,
            "reason": reason,
            "seconds": seconds,
        }
        return cls.read(Reader(document, "the document"))

    def __str__(self) -> str:
        return self.report()

    def report(self, source: str | None = None) -> str:
        """The judgement in lines: first wrong elements, findings by line, and the commands that show them again.

        Args:
            source: the submission's text; then findings quote their lines.
        """
        lines = [f"{self.verdict}: {clean(_one_line(self.reason))}"]
        if self.log is not None:
            lines += ["", clean(self.log.rstrip())]
        if self.tricks:
            lines.append(f"  tricks: {clean(', '.join(self.tricks))}")
        if self.official.threshold is not None:
            says = {True: "passes", False: "fails", None: "was asked in part"}[self.official.passes_there]
            at = f"{self.official.extents} extents, threshold {_value(self.official.threshold)}"
            if self.official.tolerance is not None:
                at += f", tolerance {self.official.tolerance:g}"
            lines.append(clean(f"  official check: {says} ({at})"))
        if self.suite.inputs:
            lines.append(f"  suite: {self.suite.failed} of {self.suite.inputs} inputs fail")
        shown = None
        # What decided the verdict first.
        for failing in sorted(self.failing_inputs, key=lambda f: not f.own_extents)[:SHOWN]:
            lines += ["", clean(f"  input {_one_line(failing.recipe)}, threshold {_value(failing.threshold)}")]
            if failing.first_wrong is not None:
                lines.append(f"    {failing.first_wrong}")
            if failing.message is not None:
                lines.append(clean(f"    no output: {_one_line(failing.message)}"))
            lines.append(clean(f"    replay: {_one_line(failing.replay)}"))
            shown = failing.replay
        lines += _more(len(self.failing_inputs), "failing input")
        file = str(self.document.get("file", "")).replace("\\", "/").rsplit("/", 1)[-1]
        quoted = source.splitlines() if source is not None else []
        for finding in self.findings[:SHOWN]:
            lines.append("")
            # A line of another file, such as shared code that the kernel includes, is not in this text.
            lines += _finding(finding, quoted if finding.at.file in (None, file) else [])
            # One run shows many findings.
            if finding.replay is not None and finding.replay != shown:
                lines.append(clean(f"    replay: {_one_line(finding.replay)}"))
                shown = finding.replay
        lines += _more(len(self.findings), "finding")
        return "\n".join(lines)


def _finding(finding: Finding, quoted: list[str]) -> list[str]:
    at = "" if finding.line is None else f"line {finding.line}: "
    if at and finding.at.file:
        at = f"{finding.at.file}, {at}"
    lines = [clean(f"  {at}{finding.kind}: {_one_line(finding.message)}")]
    if finding.line is not None and 0 < finding.line <= len(quoted):
        lines.append(clean(f"    {finding.line} | {quoted[finding.line - 1].rstrip()}"))
    if finding.other is not None and finding.other.line is not None and finding.other.line != finding.line:
        lines.append(f"    the other side: line {finding.other.line}")
    if finding.recipe is not None:
        lines.append(clean(f"    on input {_one_line(finding.recipe)}"))
    return lines


def _more(count: int, what: str) -> list[str]:
    rest = count - SHOWN
    return [] if rest <= 0 else ["", f"  and {rest} more {what}{'s' if rest > 1 else ''}"]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _value(v: float | None) -> str:
    return "?" if v is None else f"{v:.6g}"


@dataclass(frozen=True)
class Output:
    """A buffer after a run: its first elements, and the SHA-256 of all."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str
    head: tuple[Any, ...]
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> Output:
        head = r.value.get("head")
        if not isinstance(head, list):
            raise UnreadableError(f"`head` of {r.where} is no array")
        return cls(r.text("dtype"), r.numbers("shape"), r.text("sha256"), tuple(head), r.value)


@dataclass(frozen=True)
class RunResult:
    """One kernel on the CPU device.

    Attributes:
        status: `ok`, `finding`, `unsupported` or `exhausted`.
        outputs: every buffer by its name.
        findings: what the device saw.
        printf: what the kernel printed.
        instructions: warp instructions executed.
        seconds: of execution alone.
        reason: why, where it is unsupported or exhausted.
    """

    status: str
    outputs: Mapping[str, Output]
    findings: tuple[Finding, ...]
    printf: tuple[str, ...]
    instructions: int
    seconds: float
    schedule: str
    seed: int
    reason: str | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> RunResult:
        status = r.text("status")
        if status not in ("ok", "finding", "unsupported", "exhausted"):
            raise UnreadableError(f"`status` of {r.where} is none of ok, finding, unsupported, exhausted")
        outputs = r.within("outputs")
        return cls(
            status=status,
            outputs={name: Output.read(outputs.within(name)) for name in outputs.value},
            findings=r.several("findings", Finding.read),
            printf=r.texts("printf"),
            instructions=r.integer("instructions"),
            seconds=r.number("seconds"),
            schedule=r.text("schedule"),
            seed=r.integer("seed"),
            reason=r.maybe(r.text, "reason"),
            document=r.value,
        )


@dataclass(frozen=True)
class Mutant:
    """A fault that a rule plants in a file: `id` is stable, `diff` is unified."""

    id: str
    rule: str
    family: str
    line: int
    name: str
    diff: str
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> Mutant:
        return cls(
            r.text("id"), r.text("rule"), r.text("family"), r.integer("line"), r.text("name"), r.text("diff"), r.value
        )


@dataclass(frozen=True)
class Problem:
    """A problem of the catalogue; `refereeable` says whether kernels can be told apart on it at all."""

    level: int
    id: int
    name: str
    refereeable: bool
    document: Mapping[str, Any] = _rest()

    @property
    def key(self) -> str:
        """What `check` takes, such as `1/23`."""
        return f"{self.level}/{self.id}"

    @classmethod
    def read(cls, r: Reader) -> Problem:
        return cls(r.integer("level"), r.integer("id"), r.text("name"), r.boolean("refereeable"), r.value)


@dataclass(frozen=True)
class Detector:
    """A planted fault, and whether its detector reports it and nothing else."""

    planted: str
    ok: bool
    seen: tuple[str, ...]
    error: str | None

    @classmethod
    def read(cls, r: Reader) -> Detector:
        return cls(r.text("planted"), r.boolean("ok"), r.texts("seen"), r.maybe(r.text, "error"))


@dataclass(frozen=True)
class DoctorReport:
    """What is installed, and which detectors work."""

    assay: str
    nvrtc: str
    nvrtc_library: str
    detectors: tuple[Detector, ...]
    document: Mapping[str, Any] = _rest()

    @property
    def sound(self) -> bool:
        """Does every detector report its planted fault?"""
        return all(d.ok for d in self.detectors)

    @classmethod
    def read(cls, r: Reader) -> DoctorReport:
        return cls(
            assay=r.text("assay"),
            nvrtc=r.text("nvrtc"),
            nvrtc_library=r.text("nvrtc_library"),
            detectors=r.several("detectors", Detector.read),
            document=r.value,
        )


@dataclass(frozen=True)
class Pipeline:
    """What became of the mutants: distinct = generated - noncompiling - duplicate_image - equivalent."""

    problems: int
    baselines_failed: int
    generated: int
    noncompiling: int
    duplicate_image: int
    equivalent: int
    quarantined: int
    distinct: int
    witnessed: int
    schedule_witnessed: int

    @classmethod
    def read(cls, r: Reader) -> Pipeline:
        return cls(**{name: r.integer(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class FamilyScore:
    """Witnessed mutants of a family, and those of them that the first protocol misses."""

    family: str
    rules: int
    witnessed: int
    missed: int

    @classmethod
    def read(cls, r: Reader) -> FamilyScore:
        return cls(r.text("family"), r.integer("rules"), r.integer("witnessed"), r.integer("missed"))


@dataclass(frozen=True)
class RuleScore:
    """The same of a rule."""

    id: str
    family: str
    witnessed: int
    missed: int

    @classmethod
    def read(cls, r: Reader) -> RuleScore:
        return cls(r.text("id"), r.text("family"), r.integer("witnessed"), r.integer("missed"))


@dataclass(frozen=True)
class ProtocolScore:
    """What a protocol detects of the witnessed mutants, and what it says of correct kernels.

    Attributes:
        inputs: per problem; the most that any has.
        detected, witnessed: mutants.
        false_kills, correct_runs: rejections of correct kernels, and runs of them.
        unsupported, exhausted: evaluations without an answer.
    """

    name: str
    inputs: int
    detected: int
    witnessed: int
    false_kills: int
    correct_runs: int
    unsupported: int
    exhausted: int
    document: Mapping[str, Any] = _rest()

    @property
    def detected_percent(self) -> float | None:
        """Of the witnessed mutants; None where there is none."""
        return 100 * self.detected / self.witnessed if self.witnessed else None

    @classmethod
    def read(cls, r: Reader) -> ProtocolScore:
        return cls(
            name=r.text("name"),
            inputs=r.integer("inputs"),
            detected=r.integer("detected"),
            witnessed=r.integer("witnessed"),
            false_kills=r.integer("false_kills"),
            correct_runs=r.integer("correct_runs"),
            unsupported=r.integer("unsupported"),
            exhausted=r.integer("exhausted"),
            document=r.value,
        )


@dataclass(frozen=True)
class SuiteScore:
    """A suite of so many inputs per problem: percentages detected, of all mutants and held out."""

    budget: int
    full_pool: float | None
    held_out: float | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> SuiteScore:
        return cls(r.integer("budget"), r.maybe(r.number, "full_pool"), r.maybe(r.number, "held_out"), r.value)


@dataclass(frozen=True)
class SanitizerScore:
    """Mutants that the detectors flag, and those of them that the official check misses."""

    mutants_flagged: int
    flagged_and_missed_by_official: int
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader) -> SanitizerScore:
        return cls(r.integer("mutants_flagged"), r.integer("flagged_and_missed_by_official"), r.value)


@dataclass(frozen=True)
class Timing:
    """How long an audit took."""

    compile_ms_per_mutant: float
    evaluations: int
    evaluations_per_second: float
    wall_seconds: float

    @classmethod
    def read(cls, r: Reader) -> Timing:
        return cls(
            compile_ms_per_mutant=r.number("compile_ms_per_mutant"),
            evaluations=r.integer("evaluations"),
            evaluations_per_second=r.number("evaluations_per_second"),
            wall_seconds=r.number("wall_seconds"),
        )


@dataclass(frozen=True)
class AuditSummary:
    """The figures of an audit, those of `summary.json` in its run folder.

    Attributes:
        folder: the run folder.
        exit_code: 0; 1 below `fail_under`; 3 where a baseline failed and its problem is left out; None where the
            summary was read from a folder.
    """

    pipeline: Pipeline
    families: tuple[FamilyScore, ...]
    rules: tuple[RuleScore, ...]
    protocols: tuple[ProtocolScore, ...]
    suites: tuple[SuiteScore, ...]
    sanitizer: SanitizerScore
    timing: Timing
    environment: Mapping[str, Any]
    folder: str
    exit_code: int | None
    document: Mapping[str, Any] = _rest()

    @classmethod
    def read(cls, r: Reader, folder: str, exit_code: int | None) -> AuditSummary:
        return cls(
            pipeline=Pipeline.read(r.within("pipeline")),
            families=r.several("families", FamilyScore.read),
            rules=r.several("rules", RuleScore.read),
            protocols=r.several("protocols", ProtocolScore.read),
            suites=r.several("suites", SuiteScore.read),
            sanitizer=SanitizerScore.read(r.within("sanitizer")),
            timing=Timing.read(r.within("timing")),
            environment=r.mapping("environment"),
            folder=folder,
            exit_code=exit_code,
            document=r.value,
        )

    def protocol(self, name: str) -> ProtocolScore:
        """The score of a protocol.

        Raises:
            KeyError: it was not scored.
        """
        for score in self.protocols:
            if score.name == name:
                return score
        raise KeyError(name)
