"""The published cut: a window at which all replicating tables of a replicator can be read together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

INCLUDED = frozenset({TableState.REPLICATING, TableState.FAILING})
"""Tables that are paused, blocked or being copied are excluded: they may lag for a long time. So is a table after an
inexact copy until it has passed its high watermark: replay may set its rows back until then."""


@dataclass(frozen=True)
class CutTable:
    """``version``: a Delta version or an Iceberg snapshot; None for a database. ``window``: the cursor; lower than the
    cut's window if the table has not changed since. ``table``: the copy; ``shared``: others are in its target table."""

    target: str
    window: int
    identity: str = ""
    version: int | None = None
    table: str = ""
    shared: bool = False


@dataclass(frozen=True)
class Cut:
    """All changes that the source committed up to the end of ``window``. ``at``: the last commit time, or the watermark
    of a stream whose channels have progress marks; UTC in ISO 8601 format."""

    replicator: str
    window: int
    at: str
    tables: tuple[CutTable, ...]


def select_cut_tables(rows: Iterable[TableRow], sealed: int) -> tuple[TableRow, ...]:
    """The rows of all included tables if each has passed window ``sealed``; otherwise none."""
    included = tuple(row for row in rows if row.state in INCLUDED and not is_catching_up(row))
    consistent = all(row.state is TableState.REPLICATING and row.passed >= sealed for row in included)
    return included if consistent else ()


def is_catching_up(row: TableRow) -> bool:
    """Whether the table has not yet passed the high watermark of its last copy: its rows may be of different times."""
    return row.control is not None and row.control.high is not None and row.passed < row.control.high
