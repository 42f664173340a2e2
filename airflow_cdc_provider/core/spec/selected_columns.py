"""Which columns of a source table are copied. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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


def disclosed_columns(
    before: Mapping[str, str] | None, selected: TableSchema, copied: Iterable[TableSchema]
) -> dict[str, str]:
    """The columns of a sensitive table that may be copied although the YAML does not name them: name → id, empty if the
    source has no ids. ``before``: those of former runs; None in the first one, which discloses the columns that copies
    have, or else all. A column without an id that disappears ends: the next one with its name is new."""
    present = {column.name: column.id for column in selected.columns if not column.text_of}
    if before is None:
        known = {name for schema in copied for name in source_schema(schema).names}
        return {name: one for name, one in present.items() if name in known or not known}
    ids = frozenset(filter(None, before.values()))
    remaining = {name: one for name, one in present.items() if _is_disclosed(name, one, before, ids)}
    absent = {name: one for name, one in before.items() if one and one not in present.values() and name not in present}
    return remaining | absent


def _is_disclosed(name: str, column_id: str, before: Mapping[str, str], ids: Collection[str]) -> bool:
    if column_id in ids:
        return True
    return name in before and not (column_id and before[name])


def withhold(
    rule: TableRule, selected: TableSchema, disclosed: Mapping[str, str] | None
) -> tuple[TableRule, tuple[str, ...]]:
    """The rule without the new columns of a sensitive table, and their names. ``disclosed``: see ``disclosed_columns``;
    None: all. The returned rule lists the columns to copy: a column that the source adds during a run is new, too."""
    if not rule.sensitive:
        return rule, ()
    names = [column.name for column in selected.columns if not column.text_of]
    known = set(names if disclosed is None else disclosed)
    known |= {*selected.key, *(name for _, name in named_columns(rule.columns))}
    withheld = tuple(name for name in names if name not in known)
    include = tuple(name for name in names if name in known)
    return replace(rule, columns=replace(rule.columns, include=include, exclude=())), withheld
