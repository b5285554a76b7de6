"""Assay: judges GPU kernels on a CPU, measures the checkers that judge them, and stops what fails silently.

- `assay.check`, `assay.run`, `assay.mutate`, `assay.audit`, `assay.problems`, `assay.doctor`: questions to the command
  `assay`, answered as dataclasses.
- `assay.testing`: kernels in a test suite.
- `assay.guard`: stops operations on tensors beyond a size at which a backend fails silently.
- `assay.metamorphic`: one large batch against its chunks, for any callable.
- `assay.sweep_worker`, `assay.torch_worker`: the PyTorch workers of `assay sweep` and `assay verify-ops`; scripts, not
  interfaces.

Importing this package imports no framework; each module does where it needs one.
"""

from assay._api import audit, check, doctor, mutate, problems, read_summary, run
from assay._command import AssayError, CommandNotFound, find_command
from assay._results import (
    Access,
    AuditSummary,
    CheckResult,
    Detector,
    DoctorReport,
    FailingInput,
    FamilyScore,
    Finding,
    Mutant,
    Official,
    Output,
    Pipeline,
    Problem,
    ProtocolScore,
    RuleScore,
    RunResult,
    SanitizerScore,
    Suite,
    SuiteScore,
    Timing,
    WrongElement,
)

__version__ = "0.1.0"

__all__ = [
    "Access",
    "AssayError",
    "AuditSummary",
    "CheckResult",
    "CommandNotFound",
    "Detector",
    "DoctorReport",
    "FailingInput",
    "FamilyScore",
    "Finding",
    "Mutant",
    "Official",
    "Output",
    "Pipeline",
    "Problem",
    "ProtocolScore",
    "RuleScore",
    "RunResult",
    "SanitizerScore",
    "Suite",
    "SuiteScore",
    "Timing",
    "WrongElement",
    "audit",
    "check",
    "doctor",
    "find_command",
    "mutate",
    "problems",
    "read_summary",
    "run",
]
