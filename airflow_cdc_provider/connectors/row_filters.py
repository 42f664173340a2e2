"""Problems of the row filter of a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.filters import literal
from airflow_cdc_provider.core.table.schema import Kind

OPERAND = "SRC018"
"""The code of a value that is none of its column's type."""
DATES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def operand_problems(task: TableTask, code: str = OPERAND, do_for_dates: str = "correct `where`") -> Iterator[Problem]:
    """Values that are not literals of the type of their column."""
    for condition in (*task.rule.where, *task.rule.snapshot.where):
        kind = task.schema.column(condition.column).type.kind
        values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
        for value in values:
            try:
                if value is not None:
                    literal(kind, value)
            except ValueError as error:
                yield Problem(
                    code,
                    f"`where` compares column {condition.column} of {task.table} with a value it cannot have",
                    task.table,
                    f"{type(value).__name__}: {error}",
                    f"a value of type {kind}",
                    do_for_dates if kind in DATES else "correct `where`",
                )
