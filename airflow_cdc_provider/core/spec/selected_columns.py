"""Which columns of a source table are copied. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from airflow_cdc_provider.core.columns.copied import source_schema
from airflow_cdc_provider.core.spec.column_problems import named_columns
from airflow_cdc_provider.core.spec.definition import OnUnrepresentable, TableRule
from airflow_cdc_provider.core.table.schema import LIMITED, TEXT_OF, Column, Kind, LogicalType, Regime, TableSchema


def selected_schema(rule: TableRule, schema: TableSchema) -> TableSchema:
    """The columns that the rule selects, in the source's order, with the effective key."""
    columns = selected_columns(rule, schema.columns, rule.key or schema.key)
    if not rule.key or set(rule.key) == set(schema.key):
        return replace(schema, columns=columns, key=rule.key or schema.key)
    regime = Regime.DOUBLE if schema.regime is Regime.SINGLE else schema.regime
    return replace(schema, columns=columns, key=rule.key, regime=regime)


def selected_columns(rule: TableRule, columns: Iterable[Column], key: Sequence[str]) -> tuple[Column, ...]:
    """The columns that the rule selects, with its casts to text and the text columns of ``on_unrepresentable``."""
    selected = list[Column]()
    for column in columns:
        if not selects(rule, column.name):
            continue
        if column.name in rule.columns.as_text:
            selected.append(replace(column, type=LogicalType(Kind.TEXT), initial=None))
            continue
        selected.append(column)
        set_null = rule.on_unrepresentable is OnUnrepresentable.SET_NULL and column.name not in key
        if set_null and column.type.kind in LIMITED:
            text_id = f"{column.id}.text" if column.id else ""
            selected.append(Column(f"{TEXT_OF}{column.name}", LogicalType(Kind.TEXT), id=text_id))
    return tuple(selected)


def selects(rule: TableRule, column: str) -> bool:
    if rule.columns.include:
        return column in rule.columns.include
    return column not in rule.columns.exclude


def withheld_note(table: str, names: Sequence[str]) -> str:
    """One line about the ``names`` of withheld columns, with the settings that decide about them."""
    listed = ", ".join(names)
    return (
        f"{table}: new columns of the source are not copied until the YAML names them: {listed}; under its `columns`, "
        f"write `plain: [{listed}]` to copy them, `exclude: [{listed}]` to omit them, or use `hash` or `mask`; "
        "then resync the table"
    )


def withhold(rule: TableRule, selected: TableSchema, copied: TableSchema | None) -> tuple[TableRule, tuple[str, ...]]:
    """The rule without the new columns of a sensitive table, and their names. ``copied``: the schema of the copy, None
    if there is none. The returned rule lists the columns to copy: a column that the source adds during a run is new,
    too."""
    if not rule.sensitive:
        return rule, ()
    names = [column.name for column in selected.columns if not column.text_of]
    known = set(source_schema(copied).names if copied else names)
    known |= {*selected.key, *(name for _, name in named_columns(rule.columns))}
    withheld = tuple(name for name in names if name not in known)
    include = tuple(name for name in names if name in known)
    return replace(rule, columns=replace(rule.columns, include=include, exclude=())), withheld
