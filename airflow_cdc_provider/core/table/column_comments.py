"""The comments of the columns of a copy follow those in the source's catalog. Pure.

The control record has the comments that the copy has got, so that only a change at the source writes one again: others
may describe the columns of the target in their own words.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema


def comments_of_copy(schema: TableSchema, found: Mapping[str, str]) -> dict[str, str]:
    """``schema``: of the copy. ``found``: comments by the names of columns in the source."""
    return {column.name: text for column in schema.columns if (text := found.get(column.source_name, ""))}


def due_comments(control: ControlRecord, now: TableSchema, comments: Mapping[str, str]) -> tuple[Alteration, ...]:
    """``now``: the columns to copy, as the catalog has them. A column that the source no longer has keeps its comment,
    and one that the copy does not have yet gets it later."""
    if control.schema is None:
        return ()
    return tuple(
        Alteration(Alter.COMMENT, column, column, column.name in control.schema.key, comments.get(column.name, ""))
        for column in control.schema.columns
        if column.name in now.names and control.comments.get(column.name, "") != comments.get(column.name, "")
    )


def written_comments(control: ControlRecord, due: tuple[Alteration, ...]) -> dict[str, str | None]:
    comments = control.comments | {one.column.name: one.comment for one in due}
    return {name: text for name, text in comments.items() if text != ""}


def comments_after(control: ControlRecord, schema: TableSchema) -> dict[str, str | None]:
    """The comments of a copy whose schema becomes ``schema``. A column that is new, or has a new name or type, may have
    lost its comment or may have that of another column."""
    if not control.comments or control.schema is None:
        return {}
    before = {column.name: column.type for column in control.schema.columns}
    same = {column.name for column in schema.columns if before.get(column.name) == column.type}
    names = (*control.comments, *(name for name in schema.names if name not in same))
    return {name: control.comments[name] if name in same else None for name in names}
