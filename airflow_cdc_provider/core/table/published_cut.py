"""The published cut: one moment of the source at which all moving tables of a replicator can be read together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

WAITED_FOR = frozenset({TableState.REPLICATING, TableState.FAILING})
"""Paused and blocked tables, and those being copied, are left out: they may stay behind for long. So is one whose copy
was not exact, until it has caught up: replay may take its rows back for a while."""


@dataclass(frozen=True)
class CutTable:
    """``version`` is what the target counts: a Delta version, an Iceberg snapshot, nothing in a database. ``window`` is
    the cursor: behind the cut's where nothing has changed since."""

    target: str
    window: int
    identity: str = ""
    version: int | None = None


@dataclass(frozen=True)
class Cut:
    """Everything the source had committed up to the end of ``window``. ``at``: its last commit, or the
    watermark of a stream in channels that says how far each of them is; UTC, ISO."""

    replicator: str
    window: int
    at: str
    tables: tuple[CutTable, ...]


def select_cut_tables(rows: Iterable[TableRow], sealed: int) -> tuple[TableRow, ...]:
    """The rows of the tables that stand at window ``sealed`` together; none where one of them is not there yet."""
    moving = tuple(row for row in rows if row.state in WAITED_FOR and not is_catching_up(row))
    there = all(row.state is TableState.REPLICATING and row.passed >= sealed for row in moving)
    return moving if there else ()


def is_catching_up(row: TableRow) -> bool:
    """Its last copy was not exact, and the stream is not past it: rows may be of different moments."""
    return row.control is not None and row.control.high is not None and row.passed < row.control.high
