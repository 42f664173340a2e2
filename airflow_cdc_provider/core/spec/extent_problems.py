"""Problems of the rows that a full copy is to read, with the columns of a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema


def needed_columns(rule: TableRule) -> Iterator[tuple[str, str]]:
    """Field and column, for the columns that the copy must have beside its key."""
    yield from (("where", condition.column) for condition in rule.where)
    yield from (("snapshot.where", condition.column) for condition in rule.snapshot.where)
    yield from (("cluster_by", name) for name in rule.cluster_by)


def extent_problems(rule: TableRule, selected: TableSchema) -> Iterator[Problem]:
    """``selected``: the selected columns of the source, with the effective key."""
    if not selected.key and not rule.snapshot.extent.is_whole:
        yield Problem(
            "DEF091",
            f"{selected.table} has no key, so changes of rows that its copy does not have cannot be applied",
            where=selected.table,
            found="`snapshot.where`" if rule.snapshot.where else f"`snapshot.mode: {rule.snapshot.mode}`",
            allowed="a copy of the whole table",
            do="set `key`, or remove `snapshot` from the table",
        )
    changed = {*rule.columns.hidden, *rule.columns.cast}
    for name in sorted({condition.column for condition in rule.snapshot.where} & changed):
        yield Problem(
            "DEF092",
            f"`snapshot.where` names column {name!r} of {selected.table}, whose values the copy does not have",
            where=selected.table,
            found=f"{name} in `columns.cast`, `hash`, `mask` or `truncate`",
            allowed="columns that are copied unchanged",
            do="use another column",
        )
