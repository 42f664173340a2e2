"""Several source tables in one target table: which definitions and schemas go together, and what their rows have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import (
    Columns,
    Definition,
    OnDelete,
    Source,
    Staging,
    TableRule,
    Target,
    rule_fingerprint,
)
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.selection import Selection, select
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.spec.target_tables import schema_collisions
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS, MergePlan
from airflow_cdc_provider.core.table.own_rows import bounded_column, has_own_rows, leading_columns, own_rows
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from airflow_cdc_provider.targets.database.names import comment, copy_name, identity_in, is_shared
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeySet
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile
from airflow_cdc_provider.targets.delta.local_engine.own_files import is_own
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql

TEXT, INT = LogicalType(Kind.TEXT), LogicalType(Kind.INT32)
RULE = TableRule("*.t", "t", shard_column="shard")
ID = Column("id", INT, nullable=False)


def schema(name: str, *columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(name, (ID, *columns), key)


A, B = schema("eu.t", Column("v", TEXT)), schema("us.t", Column("v", TEXT))


def definition(*rules: TableRule) -> Definition:
    target = Target("postgres", options={"schema": "s"})
    return Definition(
        name="shop", source=Source("postgres", "db"), target=target, tables=rules, staging=Staging("/staging")
    )


def run(described: Sequence[TableSchema], *rules: TableRule) -> tuple[dict[str, Selection], tuple[Problem, ...]]:
    selections, problems = select(definition(*rules), described, str)
    return {one.table: one for one in selections}, problems


def codes(problems: Sequence[Problem]) -> list[tuple[str, str]]:
    return [(one.code, one.where) for one in problems]


def test_each_source_table_is_a_copy_with_its_own_value_in_front_of_the_key() -> None:
    selected, problems = run([A, B], RULE)
    assert problems == () and schema_collisions([*selected.values()]) == []
    assert {one.target for one in selected.values()} == {"t"}
    assert [one.rule.shard_value for one in selected.values()] == ["eu.t", "us.t"]
    for one in selected.values():
        assert (one.schema.names, one.schema.key) == (("shard", "id", "v"), ("shard", "id"))
        assert not one.schema.column("shard").nullable
    by_schema, _ = run([A, B], replace(RULE, shard_value="in-{schema}"))
    assert [one.rule.shard_value for one in by_schema.values()] == ["in-eu", "in-us"]
    assert len({one.definition_sha256 for one in (*selected.values(), *by_schema.values())}) == 4


def test_a_fingerprint_without_a_shard_is_as_before() -> None:
    plain = replace(RULE, shard_column="")
    assert rule_fingerprint(definition(plain), plain) == rule_fingerprint(definition(plain), replace(plain, target=""))
    assert rule_fingerprint(definition(RULE), RULE) != rule_fingerprint(definition(RULE), plain)


def test_source_tables_with_one_value_are_not_copied() -> None:
    same, problems = run([A, B], replace(RULE, shard_value="{table}"))
    assert (codes(problems), same) == ([("DEF087", "eu.t"), ("DEF087", "us.t")], {})
    one_without = (TableRule("eu.t", "t"), RULE)
    assert codes(run([A, B], *one_without)[1]) == [("DEF015", "eu.t"), ("DEF015", "us.t")]
    missing, problems = run([schema("t"), B], replace(RULE, source="*t", shard_value="{schema}"))
    assert (codes(problems), list(missing)) == ([("DEF061", "t")], ["us.t"])


def test_settings_that_make_different_tables_are_not_copied_into_one() -> None:
    for other in (
        TableRule("eu.t", "t", shard_column="region"),
        TableRule("eu.t", "T", shard_column="shard"),
        TableRule("eu.t", "t", shard_column="shard", on_delete=OnDelete.SOFT),
    ):
        selected, problems = run([A, B], other, RULE)
        assert (codes(problems), selected) == ([("DEF086", "eu.t"), ("DEF086", "us.t")], {})


def test_keys_and_common_columns_must_be_equal_and_other_columns_need_not() -> None:
    more = schema("us.t", Column("v", TEXT), Column("n", INT))
    assert schema_collisions([*run([A, more], RULE)[0].values()]) == []
    for other, difference in (
        (schema("us.t", Column("v", INT)), "column v is text and int32"),
        (schema("us.t", Column("v", TEXT), key=("id", "v")), "the key is (shard, id) and (shard, id, v)"),
        (replace(B, columns=(replace(ID, nullable=True), *B.columns[1:])), "only one key column id may be NULL"),
    ):
        selected, problems = run([A, other], RULE)
        assert problems == () and list(selected) == ["eu.t", "us.t"], "a later change must not stop the others"
        (found,) = schema_collisions([*selected.values()])
        assert (found.code, found.where, found.found) == ("DEF086", "us.t", difference)
        assert "us.t" in found.what and "eu.t" in found.what
    cast = replace(RULE, columns=Columns(cast={"v": "text"}))
    assert schema_collisions([*run([A, schema("us.t", Column("v", INT))], cast)[0].values()]) == []


def test_tables_that_need_a_target_table_of_their_own() -> None:
    for described, rule in (
        (replace(A, key=()), RULE),
        (replace(A, regime=Regime.DOUBLE), RULE),
        (A, replace(RULE, history=History.SCD2)),
        (A, replace(RULE, dropped_tables=OnDroppedTable.DROP)),
        (A, replace(RULE, snapshot=Snapshot(mode=SnapshotMode.NEVER))),
    ):
        selected, problems = run([described, B], rule)
        assert ("DEF085", "eu.t") in codes(problems) and "eu.t" not in selected


def test_a_shard_column_must_not_hide_a_column() -> None:
    assert ("DEF025", "eu.t") in codes(run([A, B], replace(RULE, shard_column="V"))[1])


def test_the_names_of_copies_in_one_table_differ_and_are_no_longer_than_names_of_tables() -> None:
    target = "t" * 100
    names = {copy_name(target, table, True) for table in ("eu.t", "us.t")} | {copy_name(target, "eu.t", False)}
    assert len(names) == 3 and max(map(len, names)) == 100
    identity = "0" * 32
    assert [is_shared(comment(identity, shared)) for shared in (False, True)] == [False, True]
    assert {identity_in(comment(identity, shared)) for shared in (False, True)} == {identity}
    assert not is_shared(f"shared by many, cdc:{identity} orders")


def test_only_files_with_rows_of_one_source_table_are_replaced_whole() -> None:
    own = own_rows(replace(RULE, shard_value="eu"))
    assert own is not None

    def file(low: str | None, high: str | None) -> ActiveFile:
        stats = {} if low is None else {"minValues": {"shard": low}, "maxValues": {"shard": high}}
        return ActiveFile({"path": "f", "stats": json.dumps(stats)})

    assert [is_own(file(low, high), own) for low, high in (("eu", "eu"), ("ap", "ca"), ("us", "us"))] == [
        True,
        False,
        False,
    ]
    assert [is_own(file(low, high), own) for low, high in (("ap", "us"), ("eu", "us"), (None, None))] == [None] * 3
    long = own_rows(replace(RULE, shard_value="e" * 33))
    assert long is not None and is_own(file("e" * 33, "e" * 33), long) is None


def test_files_are_skipped_by_the_key_of_the_source() -> None:
    selected, _ = run([A], RULE)
    shared = selected["eu.t"].schema
    assert (leading_columns(shared), bounded_column(shared).name) == (("shard", "id"), "id")
    assert (leading_columns(A), bounded_column(A).name) == (("id",), "id")
    keys = KeySet(pa.table({"shard": ["eu", "eu"], "id": [3, 40]}), leading=2)

    def file(shard: str, low: int, high: int) -> ActiveFile:
        stats = {"minValues": {"shard": shard, "id": low}, "maxValues": {"shard": shard, "id": high}}
        return ActiveFile({"path": "f", "stats": json.dumps(stats)})

    candidates = (file("eu", 1, 9), file("eu", 10, 39), file("us", 1, 9), file("eu", 40, 50))
    assert list(map(keys.may_be_in, candidates)) == [True, False, False, True]
    plan = MergePlan(shared, OnDelete.HARD, ranges=(("3", "40"),), own=own_rows(selected["eu.t"].rule))
    assert "ON t.`shard` = 'eu.t' AND (t.`id` BETWEEN 3 AND 40) AND" in merge_sql("t", "s", plan).replace(
        TARGET_ALIAS + ".", "t."
    )


def test_a_copy_is_known_to_have_others_beside_it_by_its_key() -> None:
    selected, _ = run([A], RULE)
    assert has_own_rows(selected["eu.t"].schema)
    renamed, _ = run([A], TableRule("eu.t", columns=Columns(rename={"id": "number"})))
    histories = [stored_schema(history, A) for history in History]
    assert not any(map(has_own_rows, (renamed["eu.t"].schema, A, replace(A, key=()), *histories, None)))
