"""Database errors as problems. Server messages may quote row values, which are removed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airflow_cdc_provider.core.connections.error_classes import ErrorClass, Meaning
from airflow_cdc_provider.core.errors import (
    Blocked,
    CdcError,
    CheckFailed,
    Problem,
    TargetUnavailable,
    TransactionConflict,
)
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.history import history_of
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.unfit import Unfit

QUOTED_VALUE = re.compile(r"((?:value|entry|type [\w ()]+):? ?)(?:'.*?'|\".*?\")", re.DOTALL)


BUSY = "TGT065"
RESYNC = "airflow cdc resync"
OLD_COPY = "the target still has the old copy"


def unreachable(where: str, found: str) -> TargetUnavailable:
    return TargetUnavailable.of(
        "TGT060", "the target cannot be reached", where, found, do="check host, port and network"
    )


def login_rejected(where: str, found: str, connection_id: str) -> CheckFailed:
    do = f"correct login, password or database of the Airflow connection {connection_id or 'of the target'}"
    return CheckFailed.of("TGT061", "the target rejects the login", where, found, do=do)


RIGHTS = "grant the privileges that the guide of this target lists under Rights"


def missing_privilege(address: str, found: str, do: str = RIGHTS) -> CheckFailed:
    return CheckFailed.of("TGT062", "a privilege is missing in the target", address, found, do=do)


def missing_object(address: str, found: str, grants: str = RIGHTS) -> TargetUnavailable:
    return TargetUnavailable.of(
        "TGT067",
        "an object of the target does not exist, or may not be used",
        address,
        found,
        do=f"nothing if another attempt has dropped a staging table: the next run tries again; otherwise {grants}",
    )


def value_rejected(address: str, found: str, do: str) -> Blocked:
    return _not_applied("TGT063", "the target rejects a value or a column", address, found, do)


def failed(address: str, found: str, meaning: Meaning, grants: str = RIGHTS) -> CdcError:
    """``found``: the server's own code and words."""
    do = meaning.do
    match meaning.kind:
        case ErrorClass.PERMISSION:
            return missing_privilege(address, found, grants)
        case ErrorClass.PERMANENT:
            return refused(address, found, do)
        case ErrorClass.LIMIT:
            return TargetUnavailable.of("TGT092", "a limit of the target stands in the way", address, found, do=do)
        case ErrorClass.RETRY:
            return TargetUnavailable.of("TGT064", "the target failed", address, found, do=do)
        case ErrorClass.UNKNOWN:
            return TargetUnavailable.of("TGT093", "the target returned an unknown error", address, found, do=do)


def refused(address: str, found: str, do: str) -> Blocked:
    return _not_applied("TGT091", "the target refuses a statement, and will refuse it each time", address, found, do)


def _not_applied(code: str, what: str, address: str, found: str, do: str) -> Blocked:
    data = "nothing of the batch was applied; the change log keeps it"
    return Blocked.of(code, what, address, QUOTED_VALUE.sub(r"\1…", found), do=do, data=data)


def over_quota(address: str, found: str) -> TargetUnavailable:
    do = "nothing: the next run tries again; if this persists, run less often, or ask for a higher quota"
    return TargetUnavailable.of("TGT068", "the target limits the rate of jobs", address, found, do=do)


def busy(address: str, found: str, ends_idle: bool = False) -> TargetUnavailable:
    """``ends_idle``: the server ends a session of ours that does nothing for ``IDLE_LIMIT_S``."""
    do = f"nothing: the next run tries again{'; the server ends an idle session after a minute' if ends_idle else ''}"
    return TargetUnavailable.of(BUSY, "another commit to the table is in progress", address, found, do=do)


def conflict(address: str, found: str) -> TransactionConflict:
    do = "nothing: the next run tries again; if it happens in every run, other writers of the table have to pause"
    return TransactionConflict.of(
        "TGT082", "another transaction has changed a table of this one", address, found, do=do, data="unchanged"
    )


def incomplete_load(address: str, found: int, expected: int) -> TargetUnavailable:
    return TargetUnavailable.of(
        "TGT081",
        "a table of loaded rows has another number of rows than were loaded",
        address,
        f"{found:,}",
        f"{expected:,}",
        do="nothing: the next run loads all rows again; if it happens again, look in the server's log for a crash, a"
        " failover or a failed load",
        data="nothing of it is committed",
    )


def other_collation(where: str, found: Sequence[str]) -> Problem:
    return Problem(
        "TGT094",
        "texts of the table are not compared by their characters, so that keys would count as equal that are not",
        where,
        ", ".join(found),
        "columns whose texts are equal only if all characters are",
        do="copy the table again: airflow cdc resync; or give the columns their collation back",
        data="nothing was written to it; its changes are kept in the change log",
    )


def other_columns(where: str, found: Sequence[str], schema: TableSchema, shared: bool) -> Unfit:
    """A new copy of a history does not replace its table. ``schema``: of the copy."""
    is_history = history_of(schema) is not History.NONE
    back = "give the columns their names and types back (ALTER TABLE)"
    again = (
        f"{back}, then copy each of its source tables again: {RESYNC}" if shared else f"copy the table again: {RESYNC}"
    )
    problem = Problem(
        "TGT098",
        "columns of the table are not those that were copied, so that values would be stored otherwise or not at all",
        where,
        ", ".join(found),
        "the columns of the copy, with types that keep every value",
        do=f"{back}, or set another `target`" if is_history else again,
        data="nothing was written to it; its changes are kept in the change log",
    )
    return Unfit(problem, copy_helps=not shared and not is_history)


def changed_rows(where: str, found: Sequence[str]) -> Problem:
    return Problem(
        "TGT100",
        "the server changes or skips rows of the table that are written to it",
        where,
        ", ".join(found),
        "no trigger BEFORE a row, no rule INSTEAD of a statement, no ON UPDATE; a trigger AFTER changes no row",
        do=f"drop or disable them, then copy the table again if they have changed rows: {RESYNC}",
        data="nothing was written to it; its changes are kept in the change log",
    )


def record_too_long(where: str, found: int, allowed: int) -> Blocked:
    return Blocked.of(
        "TGT083",
        "the control record of the table is too long for this target",
        where,
        f"{found:,} characters",
        f"{allowed:,}",
        do="copy fewer columns: tables.columns",
    )


def dependent_objects(address: str, found: str) -> Blocked:
    do = "drop the dependent objects, resync, and create them again"
    what = "views, foreign keys or other objects depend on the table"
    return Blocked.of("TGT066", what, address, found, do=do, data=OLD_COPY)


def not_carried_over(address: str, found: str) -> Blocked:
    return Blocked.of(
        "TGT097",
        "a new copy of the table cannot have what the table has",
        address,
        found,
        do="alter or drop it, or give the target's role the right to create it; then resync",
        data=OLD_COPY,
    )
