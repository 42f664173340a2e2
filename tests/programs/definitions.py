"""The definition of the replicator of a program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns, Metadata
from airflow_cdc_provider.core.spec.conditions import Comparison, Condition
from airflow_cdc_provider.core.spec.definition import (
    Definition,
    EngineMode,
    Ignorable,
    OnBadRecord,
    OnDelete,
    OnUnrepresentable,
    Source,
    Spark,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotDefaults, SnapshotMode
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from tests.programs.program import Setup
from tests.programs.source import KEY, NUMBER, SECRET, TEXT, TIME
from tests.spark.targets_of_kinds import OPTIONS, SERVERS

FILTERED_OUT = 3
NOT_COPIED = 1
CONSTANT, CONSTANT_VALUE = "origin", "${env:HOME} 'x'"
PATTERN = "?"
MASKED, TRUNCATED, RENAMED = 1, 1, "renamed"


@dataclass(frozen=True)
class TargetKind:
    """A target of a program: its kind, its name in the replicator, and its first name, by which it keeps its place."""

    kind: str
    name: str
    place: str


def policy_of(choice: str) -> SchemaPolicy:
    if choice == "default":
        return SchemaPolicy()
    if choice == "drop":
        return SchemaPolicy(drop_column=OnDrop.DROP, rename=OnChange.APPLY, narrow=OnChange.APPLY)
    if choice == "null":
        return SchemaPolicy(drop_column=OnDrop.SET_NULL, rename=OnChange.APPLY)
    change = OnChange(choice)
    on_drop = OnDrop.KEEP if change is OnChange.APPLY else OnDrop(choice)
    return SchemaPolicy(change, on_drop, change, change, change, change, change)


def columns_of(setup: Setup) -> Columns:
    columns = Columns()
    match setup.secret:
        case "exclude":
            columns = Columns(exclude=(SECRET,))
        case "include":
            columns = Columns(include=(KEY, NUMBER, TEXT, TIME))
        case "hash":
            columns = Columns(hash=(SECRET,))
        case "mask":
            columns = Columns(mask={SECRET: MASKED})
        case "truncate":
            columns = Columns(truncate={SECRET: TRUNCATED})
        case "rename":
            columns = Columns(rename={SECRET: RENAMED})
    added = (
        *((AddedColumn("changed_at", metadata=Metadata.COMMIT_TIME),) if setup.metadata else ()),
        *((AddedColumn(CONSTANT, CONSTANT_VALUE),) if setup.constant else ()),
    )
    return replace(columns, add=added, cast={NUMBER: "text"} if setup.cast else {})


def target_of(one: TargetKind, folder: Path, schema: str) -> Target:
    if one.kind in SERVERS:
        return Target(one.kind, connection="warehouse", name=one.name, options={"schema": schema})
    return Target(
        one.kind.partition(" ")[0], f"{folder}/lake_{one.place}", name=one.name, options=OPTIONS.get(one.kind, {})
    )


def _not_filtered_out(setup: Setup) -> Condition:
    return Condition(NUMBER, Comparison.NOT_EQUAL, str(FILTERED_OUT) if setup.cast else FILTERED_OUT)


def rule_of(setup: Setup, source_name: str, target: str, targets: tuple[str, ...] = ()) -> TableRule:
    """``targets``: those that the table is copied into, if not into all."""
    history = History(setup.history)
    return TableRule(
        source_name,
        "both" if setup.shards else target,
        targets,
        shard_column="region" if setup.shards else "",
        shard_value=target if setup.shards else "",
        columns=columns_of(setup),
        sensitive=setup.sensitive,
        where=(_not_filtered_out(setup),) if setup.filtered else (),
        key=(NUMBER,) if setup.declared_key else (),
        on_delete=OnDelete(setup.on_delete),
        ignore=tuple(map(Ignorable, setup.ignore)),
        history=history,
        history_target=f"{target}_history" if history is not History.NONE and setup.beside else "",
        on_bad_record=OnBadRecord.QUARANTINE if setup.quarantine else OnBadRecord.STOP,
        on_unrepresentable=OnUnrepresentable.SET_NULL if setup.set_null else OnUnrepresentable.STOP,
        snapshot=Snapshot(where=(Condition(NUMBER, Comparison.NOT_EQUAL, NOT_COPIED),) if setup.partial else ()),
    )


def definition_of(setup: Setup, source: Source, rules: tuple[TableRule, ...], folder: Path, name: str) -> Definition:
    return Definition(
        name=name,
        source=source,
        tables=rules,
        staging=Staging(f"{folder}/staging"),
        schema_changes=policy_of(setup.policy),
        snapshot=SnapshotDefaults(SnapshotMode(setup.mode)),
        new_tables=OnNewTable(setup.new or "copy"),
        dropped_tables=OnDroppedTable(setup.dropped) if setup.dropped else None,
        spark=Spark(engine=EngineMode(setup.engine)),
        hash_connection="hashes" if setup.secret == "hash" else "",
    )
