"""What an error of a server means for the statement that met it. Each server has one table of its codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class ErrorClass(StrEnum):
    """RETRY: the same statement can succeed later. LIMIT: it can, but a limit of the server stands in its way.
    PERMANENT: it fails each time until somebody changes something. PERMISSION: until somebody grants something.
    UNKNOWN: not in the table."""

    RETRY = "retry"
    LIMIT = "limit"
    PERMANENT = "permanent"
    PERMISSION = "permission"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Meaning:
    """``do``: what to change, and where."""

    kind: ErrorClass
    do: str


UNKNOWN = Meaning(
    ErrorClass.UNKNOWN,
    "look up the server's words: this provider does not know the error, so the next runs repeat the statement",
)
LATER = "nothing: the next run tries again"
CHANGED = "nothing: the next run reads the catalog again; if this comes back, run `airflow cdc check`"
STATEMENT = "run `airflow cdc check`: the server does not take a statement, so its version or a setting is unusual"
VALUE = "correct the value at the source, or leave its column out: `columns.exclude`; then `airflow cdc resume`"
RESUME = "then `airflow cdc resume`"
ATTACHED = f"change or drop what raises it: a trigger, rule or function that somebody gave to the table; {RESUME}"
GENERATED = "make the column that the server names a plain one again, or copy the table again: `airflow cdc resync`"
CONSTRAINT = (
    "drop the constraint that the server names, if somebody gave it to the table; otherwise correct the value at the "
    f"source, or leave its column out: `columns.exclude`; {RESUME}"
)
UNIQUE = (
    "drop the unique index that the server names, unless it is the key of the copy, or make it a constraint that is "
    "DEFERRABLE INITIALLY DEFERRED where the server has these: rows of a batch may exchange their values; otherwise "
    f"correct the value at the source; {RESUME}"
)
PARTITION = f"give the table a partition for the value, or drop the partitions; {RESUME}"
DAMAGED = "have the server's administrator repair the table or its index: its files are damaged"


def retry(codes: str, do: str = LATER) -> Mapping[str, Meaning]:
    return _table(ErrorClass.RETRY, codes.split(), do)


def limit(codes: str, do: str) -> Mapping[str, Meaning]:
    return _table(ErrorClass.LIMIT, codes.split(), do)


def permanent(codes: str, do: str) -> Mapping[str, Meaning]:
    return _table(ErrorClass.PERMANENT, codes.split(), do)


def permission(codes: str, do: str = "") -> Mapping[str, Meaning]:
    return _table(ErrorClass.PERMISSION, codes.split(), do)


def _table(kind: ErrorClass, codes: Iterable[str], do: str) -> Mapping[str, Meaning]:
    return dict.fromkeys(codes, Meaning(kind, do))
