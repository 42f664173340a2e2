"""The exceptions that the provider raises, named by what the caller should do.

    CdcError
    ├── DefinitionInvalid     correct the YAML; carries all problems of a file
    ├── CheckFailed           correct an external system (grants, settings); carries all problems
    ├── NotInstalled          install the named extra
    ├── CommandRefused        the requested command is not possible
    │   ├── KeyUsed               its idempotency key belongs to another command
    │   └── VersionChanged        the tables are not as the requester has seen them
    ├── NotFound              there is no such replicator, table, record or file
    ├── Blocked               no retry can help; an operator must decide
    │   ├── PositionLost      the source no longer serves the position
    │   ├── IdentityChanged   the source or the change log has been replaced
    │   ├── ForeignTarget     the target table belongs to another writer, or is missing
    │   ├── IntegrityBroken   change log and target contradict each other
    │   │   └── RowMissing    a partial change has no row in the target
    │   ├── BadRecordFound    a record that cannot be decoded, or that the target cannot hold
    │   └── StagingInvalid    a file of the change log is missing or damaged
    ├── Retryable             try again later
    │   ├── SourceUnavailable
    │   │   └── SourceUnreachable     its connection or login fails: no table can be read
    │   ├── TargetUnavailable
    │   │   └── TransactionConflict   the transaction was rolled back for the sake of another one
    │   ├── StagingUnavailable
    │   ├── StateUnavailable
    │   └── StepFailed        a Spark job ended without a usable result
    └── Fenced                a newer owner has the table or lane; exit without an error

``retryable`` decides whether Airflow retries the task; ``exit_code`` is the exit status of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from airflow_cdc_provider.core.printable import printable


@dataclass(frozen=True)
class Problem:
    """One problem, as shown to an operator. No field may contain a secret.

    ``table``: the source table that it concerns, empty if it is not about one. ``columns``: if the table can be copied
    without them, and then has no such problem."""

    code: str
    what: str
    where: str = ""
    found: str = ""
    allowed: str = ""
    do: str = ""
    data: str = ""
    table: str = field(default="", kw_only=True)
    columns: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def details(self) -> list[str]:
        """The fields with a text, each with its name, in the order in which an operator reads them."""
        fields = ("where", "found", "allowed", "data", "do")
        return [f"{name}: {printable(text)}" for name in fields if (text := getattr(self, name))]

    def __str__(self) -> str:
        return " | ".join([f"{self.code} {printable(self.what)}", *self.details])


class CdcError(Exception):
    """Base class. Carries one or more problems; ``str()`` shows one per line."""

    retryable = False
    exit_code = 70

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems: tuple[Problem, ...] = problems

    @classmethod
    def of(
        cls, code: str, what: str, where: str = "", found: str = "", allowed: str = "", do: str = "", data: str = ""
    ) -> Self:
        """An error with one problem. The arguments are the fields of the problem."""
        return cls(Problem(code, what, where, found, allowed, do, data))

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


class KeyUsed(CommandRefused):
    pass


class VersionChanged(CommandRefused):
    pass


class NotFound(CdcError):
    exit_code = 66


class Blocked(CdcError):
    exit_code = 65


class PositionLost(Blocked):
    pass


class IdentityChanged(Blocked):
    pass


class ForeignTarget(Blocked):
    pass


class IntegrityBroken(Blocked):
    pass


class RowMissing(IntegrityBroken):
    pass


class BadRecordFound(Blocked):
    pass


class StagingInvalid(Blocked):
    pass


class Retryable(CdcError):
    retryable = True
    exit_code = 75


UNREADABLE = (Retryable, CheckFailed)
"""Why a table of a target cannot be read. A login that is refused concerns the copies of one target, as an outage
does."""


class SourceUnavailable(Retryable):
    pass


class SourceUnreachable(SourceUnavailable):
    pass


class TargetUnavailable(Retryable):
    pass


class TransactionConflict(TargetUnavailable):
    pass


class StagingUnavailable(Retryable):
    pass


class StateUnavailable(Retryable):
    pass


class StepFailed(Retryable):
    pass


class Fenced(CdcError):
    exit_code = 75


def of_table(table: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems, all of which concern this source table."""
    return (replace(problem, table=table) for problem in problems)


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raises CheckFailed if there are any."""
    if found := tuple(problems):
        raise CheckFailed(*found)
