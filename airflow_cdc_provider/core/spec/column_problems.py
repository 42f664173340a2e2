"""Problems of the ``columns`` settings with the columns of a table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_cdc_provider.core.columns.casts import SOURCES, can_cast
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.columns import OF_CHANGES, AddedColumn, Columns
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Kind, Regime, TableSchema, parse_type

PER_COLUMN = ("exclude", "plain", "cast", "hash", "mask", "truncate", "rename")
"""Settings with names of columns that a pattern may have in some of its tables only."""


def named_columns(columns: Columns) -> list[tuple[str, str]]:
    """Field and column, for every column of the source that these settings name."""
    return [(f"columns.{field}", name) for field in PER_COLUMN for name in getattr(columns, field)]


def conversion_problems(rule: TableRule, selected: TableSchema) -> Iterator[Problem]:
    """``selected``: the selected columns of the source, with the effective key."""
    columns, names = rule.columns, selected.names
    for name, cast in columns.converted.items():
        if name in names:
            yield from _cast_problems(selected, name, cast)
    for name in columns.truncate:
        if name in names and (name in columns.converted or selected.column(name).type.kind is not Kind.TEXT):
            yield _not_text(selected, name)
    for field in ("mask", "truncate"):
        for name in getattr(columns, field):
            if name in selected.key:
                yield _one_key(selected, field, name, "two keys may become one")
    if not selected.key or selected.regime is Regime.DOUBLE:
        yield from (_compared_rows(selected, added) for added in columns.add if added.metadata in OF_CHANGES)


def _cast_problems(selected: TableSchema, name: str, cast: str) -> Iterator[Problem]:
    source, target = selected.column(name).type.kind, parse_type(cast)
    if not can_cast(source, target.kind):
        yield Problem(
            "DEF057",
            f"column {name!r} of {selected.table} cannot be cast to {target}",
            where=selected.table,
            found=f"type {source}",
            allowed=_sorted(SOURCES.get(target.kind, ())) or "no type",
            do="cast it to another type, or to `text`",
        )
    elif name in selected.key and source is Kind.TEXT:
        yield _one_key(selected, "cast", name, "two texts may be one value: '7' and '07'")


def _sorted(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted(kinds))


def _not_text(selected: TableSchema, name: str) -> Problem:
    return Problem(
        "DEF058",
        f"column {name!r} of {selected.table} cannot be truncated",
        where=selected.table,
        found=f"type {selected.column(name).type}",
        allowed=Kind.TEXT,
        do="use `mask` or `hash`, or cast the column to `text`, too",
    )


def _one_key(selected: TableSchema, field: str, name: str, why: str) -> Problem:
    return Problem(
        "DEF059",
        f"`columns.{field}` cannot be applied to key column {name!r} of {selected.table}: {why}",
        where=selected.table,
        found=f"key ({', '.join(selected.key)})",
        allowed="`hash`, `rename`, and casts of other types than text",
        do="use `hash`, or another `key`",
    )


def _compared_rows(selected: TableSchema, added: AddedColumn) -> Problem:
    why = "two of its rows may have one key for a moment" if selected.key else "it has no key"
    return Problem(
        "DEF060",
        f"{selected.table} cannot have column {added.name!r}: all values identify its rows, because {why}",
        where=selected.table,
        found=f"metadata: {added.metadata}",
        allowed="`value`, `metadata: source_table`",
        do="remove the column",
    )
