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
from airflow_cdc_provider.core.spec.snapshot import SnapshotDefaults, SnapshotMode
from tests.programs.program import Setup
from tests.programs.source import KEY, NUMBER, SECRET, TIME
from tests.spark.targets_of_kinds import OPTIONS, SERVERS

FILTERED_OUT = 3
MASKED, TRUNCATED, RENAMED = 1, 1, "renamed"
NAMED = (KEY, NUMBER, "v", TIME, SECRET)


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
        case "hash":
            columns = Columns(hash=(SECRET,))
        case "mask":
            columns = Columns(mask={SECRET: MASKED})
        case "truncate":
            columns = Columns(truncate={SECRET: TRUNCATED})
        case "rename":
            columns = Columns(rename={SECRET: RENAMED})
    if setup.metadata:
        columns = replace(columns, add=(AddedColumn("changed_at", metadata=Metadata.COMMIT_TIME),))
    return columns


def target_of(one: TargetKind, folder: Path, schema: str) -> Target:
    if one.kind in SERVERS:
        return Target(one.kind, connection="warehouse", name=one.name, options={"schema": schema})
    return Target(
        one.kind.partition(" ")[0], f"{folder}/lake_{one.place}", name=one.name, options=OPTIONS.get(one.kind, {})
    )


def rule_of(setup: Setup, source_name: str, target: str) -> TableRule:
    history = History(setup.history)
    return TableRule(
        source_name,
        "both" if setup.shards else target,
        shard_column="region" if setup.shards else "",
        shard_value=target if setup.shards else "",
        columns=columns_of(setup),
        sensitive=setup.sensitive,
        where=(Condition(NUMBER, Comparison.NOT_EQUAL, FILTERED_OUT),) if setup.filtered else (),
        key=(NUMBER,) if setup.declared_key else (),
        on_delete=OnDelete(setup.on_delete),
        ignore=tuple(map(Ignorable, setup.ignore)),
        history=history,
        history_target=f"{target}_history" if history is not History.NONE and setup.beside else "",
        on_bad_record=OnBadRecord.QUARANTINE if setup.quarantine else OnBadRecord.STOP,
        on_unrepresentable=OnUnrepresentable.SET_NULL if setup.set_null else OnUnrepresentable.STOP,
    )


def definition_of(setup: Setup, source: Source, rules: tuple[TableRule, ...], folder: Path, name: str) -> Definition:
    return Definition(
        name=name,
        source=source,
        tables=rules,
        staging=Staging(f"{folder}/staging"),
        schema_changes=policy_of(setup.policy),
        snapshot=SnapshotDefaults(SnapshotMode(setup.mode)),
        spark=Spark(engine=EngineMode(setup.engine)),
        hash_connection="hashes" if setup.secret == "hash" else "",
    )
