"""Every failure the provider raises on purpose, named by what the caller should do.

    CdcError
    ├── DefinitionInvalid     mend the YAML; all problems of a file at once
    ├── CheckFailed           mend a system outside (grants, settings); all problems at once
    ├── NotInstalled          install the named extra
    ├── CommandRefused        the operator asked for something that cannot be done
    ├── Blocked               no retry cures it; an operator must decide
    │   ├── PositionLost      the source no longer serves our position
    │   ├── IdentityChanged   the source or the log is not the one we knew
    │   ├── ForeignTarget     the target table is not ours, or is gone
    │   ├── SchemaRefused     a schema change that must not be applied by itself
    │   ├── IntegrityBroken   log and target contradict each other
    │   │   └── RowMissing    a change of some columns meets no row
    │   ├── BadRecordMet      a record that cannot be read, or that the target cannot hold
    │   └── StagingInvalid    a file of the change log is missing or damaged
    ├── Retryable             try again later
    │   ├── SourceUnavailable
    │   ├── TargetUnavailable
    │   ├── StagingUnavailable
    │   ├── StateUnavailable
    │   └── StepFailed        a Spark job ended without a usable result
    └── Fenced                somebody newer owns the table or lane; end quietly

``retryable`` decides whether Airflow tries the task again; ``exit_code`` is what the command line returns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, in the words an operator needs. No field may ever hold a secret."""

    code: str
    what: str
    where: str = ""
    found: str = ""
    allowed: str = ""
    do: str = ""
    data: str = ""

    def __str__(self) -> str:
        parts = [f"{self.code} {self.what}"]
        for label, text in (
            ("where", self.where),
            ("found", self.found),
            ("allowed", self.allowed),
            ("data", self.data),
            ("do", self.do),
        ):
            if text:
                parts.append(f"{label}: {text}")
        return " | ".join(parts)


class CdcError(Exception):
    """Base of all. Holds one or more problems; ``str()`` shows one per line."""

    retryable = False
    exit_code = 70

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems: tuple[Problem, ...] = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class DefinitionInvalid(CdcError):
    exit_code = 78


class CheckFailed(CdcError):
    exit_code = 78


class NotInstalled(CdcError):
    exit_code = 78


class CommandRefused(CdcError):
    exit_code = 64


class Blocked(CdcError):
    exit_code = 65


class PositionLost(Blocked):
    pass


class IdentityChanged(Blocked):
    pass


class ForeignTarget(Blocked):
    pass


class SchemaRefused(Blocked):
    pass


class IntegrityBroken(Blocked):
    pass


class RowMissing(IntegrityBroken):
    pass


class BadRecordMet(Blocked):
    pass


class StagingInvalid(Blocked):
    pass


class Retryable(CdcError):
    retryable = True
    exit_code = 75


class SourceUnavailable(Retryable):
    pass


class TargetUnavailable(Retryable):
    pass


class StagingUnavailable(Retryable):
    pass


class StateUnavailable(Retryable):
    pass


class StepFailed(Retryable):
    pass


class Fenced(CdcError):
    exit_code = 75
