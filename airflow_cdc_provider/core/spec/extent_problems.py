"""Problems of the rows that a full copy is to read, with the columns of a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.slices import SLICED_KINDS
from airflow_cdc_provider.core.table.schema import TableSchema


def needed_columns(rule: TableRule) -> Iterator[tuple[str, str]]:
    """Field and column, for the columns that the copy must have beside its key."""
    yield from (("where", condition.column) for condition in rule.where)
    yield from (("snapshot.where", condition.column) for condition in rule.snapshot.where)
    if rule.snapshot.slices.column:
        yield "snapshot.slices", rule.snapshot.slices.column
    yield from (("cluster_by", name) for name in rule.cluster_by)


def extent_problems(rule: TableRule, selected: TableSchema) -> Iterator[Problem]:
    """``selected``: the selected columns of the source, with the effective key."""
    snapshot = rule.snapshot
    column = snapshot.slices.column
    if not selected.key and (column or not snapshot.extent.is_whole):
        found = "slices" if column else "where" if snapshot.where else f"mode: {snapshot.mode}"
        yield Problem(
            "DEF091",
            f"{selected.table} has no key, so it can only be copied as a whole",
            where=selected.table,
            found=f"`snapshot.{found}`",
            allowed="a copy of the whole table",
            do="set `key`, or remove `snapshot` from the table",
        )
    if column in selected.names and selected.column(column).type.kind not in SLICED_KINDS:
        yield Problem(
            "DEF094",
            f"`snapshot.slices` names column {column!r} of {selected.table}, which is no time",
            where=selected.table,
            found=f"type {selected.column(column).type.kind}",
            allowed=", ".join(sorted(SLICED_KINDS)),
            do="use another column",
        )
    if column and rule.history is not History.NONE:
        yield Problem(
            "DEF096",
            f"{selected.table} keeps a history, of which no slice can be copied again",
            where=selected.table,
            found=f"`snapshot.slices` and `history: {rule.history}`",
            allowed="one of them",
            do="remove `slices`",
        )
    changed = {*rule.columns.hidden, *rule.columns.cast}
    for name in sorted({*(condition.column for condition in snapshot.where), column} & changed):
        yield Problem(
            "DEF092",
            f"`snapshot` names column {name!r} of {selected.table}, whose values the copy does not have",
            where=selected.table,
            found=f"{name} in `columns.cast`, `hash`, `mask` or `truncate`",
            allowed="columns that are copied unchanged",
            do="use another column",
        )
