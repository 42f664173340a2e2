"""What each target does at a schema change that its policy applies: decided by the function that decides in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.schema_decisions import SchemaAction, SchemaStop, decide_schema_change
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare, widens
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.registry import open_targets
from airflow_cdc_provider.targets.target import AltersTables, TargetTables

ALL = SchemaPolicy(OnChange.APPLY, OnDrop.KEEP, *[OnChange.APPLY] * 5)
EFFECTS = {SchemaAction.ALTER: "in place", SchemaAction.COPY: "copied again", SchemaAction.STOP: "blocked"}
WITH_THE_ROWS = "with the rows"
KEY, OTHER, KEPT = (Column(name, LogicalType(Kind.INT32), name != "k", id=name) for name in "kab")
DECIMALS = ((10, 2), (14, 2), (14, 4))


@dataclass(frozen=True)
class TargetVariant:
    """A target type with options that decide what it can alter."""

    title: str
    type: str
    options: dict[str, Any] = field(default_factory=dict)

    def open(self) -> TargetTables:
        """Opens no connection, and needs no change log."""
        definition = _definition(Target(self.type, "/lake", options=self.options))
        return open_targets(definition, SECRETS, cast(Any, None)).only


SCHEMA = {"schema": "lake"}
FEATURES = {"table_features": ["columnMapping", "typeWidening"]}
TARGETS = (
    TargetVariant("PostgreSQL", "postgres", SCHEMA),
    TargetVariant("MySQL, MariaDB", "mysql", SCHEMA),
    TargetVariant("Iceberg", "iceberg"),
    TargetVariant("Delta", "delta"),
    TargetVariant("Delta with `table_features`", "delta", FEATURES),
    TargetVariant("Snowflake", "snowflake", {"database": "shop", **SCHEMA}),
    TargetVariant("BigQuery", "bigquery", {"dataset": "lake", "project": "p"}),
    TargetVariant("Redshift", "redshift", {"stage": "s3://lake/stage", **SCHEMA}),
    TargetVariant("Spanner", "spanner", {"instance": "i", "database": "shop"}),
)
SECRETS = Secrets(ConnectionInfo("source"), ConnectionInfo("target", "host", 1, "user", "", schema="lake"))


@dataclass(frozen=True)
class AppliedChange:
    """``in_key``: the change before it, of a column of the key."""

    title: str
    before: TableSchema
    after: TableSchema
    policy: SchemaPolicy = ALL
    in_key: bool = False

    def effect(self, tables: TargetTables) -> str:
        if self.policy.passes(compare(self.before, self.after)):
            return WITH_THE_ROWS

        def statements(alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
            return tables.statements("t", alterations) if isinstance(tables, AltersTables) else None

        state = State(TableState.REPLICATING, "")
        control = ControlRecord("shop", "t", "log", "owner", "a", 1, 1, "", state, schema=self.before)
        stop = SchemaStop(1, self.before, self.after)
        return EFFECTS[decide_schema_change(control, stop, self.policy, statements, None).action]


def can_apply(change: TableChange, tables: TargetTables) -> bool:
    """Whether the target applies the change, if its policy does and the stream contains it."""
    return change not in ALTERED or ALTERED[change].effect(tables) != EFFECTS[SchemaAction.STOP]


def applied_changes() -> Iterator[AppliedChange]:
    yield AppliedChange("a new column", _schema(KEY, KEPT), _schema(KEY, KEPT, OTHER))
    yield from (_dropped(on_drop) for on_drop in (OnDrop.KEEP, OnDrop.SET_NULL, OnDrop.DROP))
    yield _renamed()
    key = replace(KEY, name="c")
    yield AppliedChange("a renamed column of the key", _schema(KEY), _schema(key, key="c"), in_key=True)
    for old, new in wider_types():
        yield _retyped(f"`{old}` → `{new}`", old, new)
        yield _retyped(f"`{old}` → `{new}` in the key", old, new, in_key=True)
    yield _retyped("any other type", LogicalType(Kind.INT64), LogicalType(Kind.TEXT))
    yield AppliedChange("another key", _schema(KEY, OTHER), _schema(KEY, OTHER, key="a"))


def wider_types() -> Iterator[tuple[LogicalType, LogicalType]]:
    plain = [LogicalType(kind) for kind in Kind if kind is not Kind.DECIMAL]
    yield from ((old, new) for old in plain for new in plain if old != new and widens(old, new))
    first, *others = (LogicalType(Kind.DECIMAL, precision, scale) for precision, scale in DECIMALS)
    yield from ((first, new) for new in others)


def table() -> str:
    """A Markdown table: a row per change, a column per target. A column of the key has a row of its own only where it
    differs."""
    opened = [variant.open() for variant in TARGETS]
    titles = [variant.title for variant in TARGETS]
    lines = [f"| change | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    previous: list[str] = []
    for change in applied_changes():
        effects = [change.effect(tables) for tables in opened]
        if not change.in_key or effects != previous:
            lines.append(f"| {change.title} | {' | '.join(effects)} |")
        previous = effects
    lines.append(f"| another comment of a column | {' | '.join(map(_effect_of_comment, opened))} |")
    return "\n".join(lines)


def _effect_of_comment(tables: TargetTables) -> str:
    comment = [Alteration(Alter.COMMENT, OTHER, OTHER)]
    can_comment = isinstance(tables, AltersTables) and tables.statements("t", comment) is not None
    return EFFECTS[SchemaAction.ALTER] if can_comment else ""


def _dropped(on_drop: OnDrop) -> AppliedChange:
    policy = replace(ALL, drop_column=on_drop)
    return AppliedChange(f"a dropped column, `{on_drop.value}`", _schema(KEY, KEPT, OTHER), _schema(KEY, KEPT), policy)


def _renamed() -> AppliedChange:
    return AppliedChange("a renamed column", _schema(KEY, OTHER), _schema(KEY, replace(OTHER, name="c")))


def _retyped(title: str, old: LogicalType, new: LogicalType, in_key: bool = False) -> AppliedChange:
    column, key = (KEY, "k") if in_key else (OTHER, "k")
    others = () if in_key else (KEY,)
    before, after = (_schema(*others, replace(column, type=kind), key=key) for kind in (old, new))
    return AppliedChange(title, before, after, in_key=in_key)


def _schema(*columns: Column, key: str = "k") -> TableSchema:
    return TableSchema("t", columns, (key,))


ALTERED = {
    TableChange.DROP_COLUMN: _dropped(OnDrop.DROP),
    TableChange.RENAME_COLUMN: _renamed(),
    TableChange.WIDEN: _retyped("a wider integer", LogicalType(Kind.INT32), LogicalType(Kind.INT64)),
}
"""The changes that a target applies by altering a column."""


def _definition(target: Target) -> Definition:
    source = Source("postgres", "source", options={"publication": "cdc"})
    return Definition(name="shop", source=source, target=target, tables=(TableRule("t"),), staging=Staging("/staging"))
