"""The lineage of copies: what a step of a run wrote, and from which columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.table.schema import Column

WRITES = frozenset({StepKind.SNAPSHOT, StepKind.MERGE, StepKind.RESYNC, StepKind.REPLAY})
COPIES = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC})


@dataclass(frozen=True)
class ColumnLineage:
    """``source``: empty for a column that the copy adds. ``converted``: it has other values; ``masked``: which do not
    reveal the source's."""

    name: str
    type: str
    source: str
    converted: bool
    masked: bool


@dataclass(frozen=True)
class CopyLineage:
    """``table``: in the source; ``target``: in the target with this name. ``rows``: written; None if nothing is
    written, or it is unknown how many. ``replaced``: all rows are new. ``identical``: what a comparison found; None
    without one."""

    copy: str
    table: str
    target: str
    columns: tuple[ColumnLineage, ...]
    rows: int | None = None
    replaced: bool = False
    identical: bool | None = None


def copies_of(tasks: Iterable[TableTask], result: StepResult) -> list[CopyLineage]:
    """The copies that a step wrote or compared. ``tasks``: of the run."""
    by_name = {task.table: task for task in tasks}
    found = [(by_name[one.table], one) for one in result.tables if one.table in by_name]
    if result.kind in WRITES:
        return [_written(task, one, result.kind) for task, one in found if one.outcome is Outcome.DONE]
    return [_compared(task, one) for task, one in found if "identical" in one.detail]


def _written(task: TableTask, result: TableResult, kind: StepKind) -> CopyLineage:
    written = None if result.found else result.rows or sum(result.counts.values())
    columns = _columns(task.schema.columns)
    return CopyLineage(task.table, task.source_table, task.target, columns, written, kind in COPIES)


def _compared(task: TableTask, result: TableResult) -> CopyLineage:
    columns, identical = _columns(task.schema.columns), bool(result.detail["identical"])
    return CopyLineage(task.table, task.source_table, task.target, columns, identical=identical)


def _columns(columns: Sequence[Column]) -> tuple[ColumnLineage, ...]:
    return tuple(
        ColumnLineage(
            column.name,
            str(column.type),
            column.source_name,
            column.is_converted,
            column.is_masked,
        )
        for column in columns
    )
