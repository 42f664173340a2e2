"""Casts of columns to text that a stream does not allow. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS

NOT_CASTABLE = FLOATS | {Kind.BYTES}
"""The stream has these values in a binary form, and not as the text of the server."""


def cast_problems(task: TableTask, schema: TableSchema, why: str) -> Iterator[Problem]:
    """``schema``: of the source. ``why``: the end of "column … cannot be cast"."""
    for column in schema.columns:
        if column.name in task.rule.columns.as_text and column.type.kind in NOT_CASTABLE:
            yield Problem(
                "SRC103",
                f"column {column.name} of {task.table} cannot be cast{why}",
                where=task.table,
                found=f"`columns.cast` of a {column.native}",
                allowed="integers, decimals, dates, times, texts",
                do="remove it from `cast`",
                columns=(column.name,),
            )
