"""The effect of a schema change on the copy of a table."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

WIDER: dict[Kind, frozenset[Kind]] = {
    Kind.INT16: frozenset({Kind.INT32, Kind.INT64}),
    Kind.INT32: frozenset({Kind.INT64}),
    Kind.FLOAT32: frozenset({Kind.FLOAT64}),
}


@dataclass(frozen=True)
class Evolution:
    """``added`` and ``widened`` can be applied automatically, in this order and repeatedly. ``dropped`` columns stay in
    the target. ``breaking``: why an operator must decide; empty if no decision is required."""

    added: tuple[Column, ...] = ()
    widened: tuple[Column, ...] = ()
    dropped: tuple[str, ...] = ()
    breaking: str = ""


def compare(old: TableSchema, new: TableSchema) -> Evolution:
    """The steps from ``old`` to ``new``. Columns dropped and added together may be a rename, which is breaking."""
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    added = tuple(column for column in new.columns if column.name not in before)
    dropped = tuple(name for name in before if name not in after)
    changed = [column for name, column in after.items() if name in before and before[name].type != column.type]
    reasons = [
        f"column {column.name} changed from {before[column.name].type} to {column.type}"
        for column in changed
        if not widens(before[column.name].type, column.type)
    ]
    if added and dropped:
        reasons.append(
            f"{', '.join(dropped)} dropped while {', '.join(column.name for column in added)} added: perhaps a rename"
        )
    if old.key != new.key:
        reasons.append(f"the key changed from ({', '.join(old.key)}) to ({', '.join(new.key)})")
    return Evolution(added, tuple(changed), dropped, "; ".join(reasons))


def widens(old: LogicalType, new: LogicalType) -> bool:
    """Whether every value of ``old`` is a value of ``new`` without loss of digits."""
    if old.kind is Kind.DECIMAL and new.kind is Kind.DECIMAL:
        assert old.precision and new.precision and old.scale is not None and new.scale is not None
        return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    return new.kind in WIDER.get(old.kind, frozenset())
