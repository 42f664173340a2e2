"""Which comments of columns a copy gets, and which of those that it has got are still certain."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.column_comments import (
    comments_after,
    comments_of_copy,
    due_comments,
    written_comments,
)
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TEXT_OF, Column, Kind, LogicalType, Origin, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.delta import alterations as delta
from airflow_cdc_provider.targets.delta.metadata import TableMetadata
from airflow_cdc_provider.targets.iceberg.record_properties import own_record, snapshot_properties, table_properties
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql

INT, LONG, TEXT = (LogicalType(kind) for kind in (Kind.INT32, Kind.INT64, Kind.TEXT))
ID, V, N = Column("id", INT, nullable=False), Column("v", TEXT), Column("n", INT)


def schema(*columns: Column) -> TableSchema:
    return TableSchema("public.t", (ID, *columns), ("id",))


def control(comments: dict[str, str | None], *columns: Column) -> ControlRecord:
    state = State(TableState.REPLICATING, "")
    return ControlRecord("shop", "t", "log", "o", "a", 1, 1, "", state, schema=schema(*columns), comments=comments)


def due(known: dict[str, str | None], wanted: dict[str, str], *now: Column) -> dict[str, str]:
    return {one.column.name: one.comment for one in due_comments(control(known, V, N), schema(*now), wanted)}


def test_a_comment_belongs_to_the_column_that_is_made_from_its_column() -> None:
    columns = (
        Column("hashed", TEXT, origin=Origin("mail", TEXT, converted=True, hidden=True)),
        Column("loaded_at", TEXT, origin=Origin("", TEXT)),
        Column(f"{TEXT_OF}v", TEXT),
        V,
    )
    found = {"mail": "of a person", "v": "text", "left out": "secret"}
    assert comments_of_copy(schema(*columns), found) == {"hashed": "of a person", "v": "text"}


def test_only_changes_at_the_source_are_written() -> None:
    assert due({}, {}, V, N) == {}
    assert due({}, {"v": "text", "n": "number"}, V, N) == {"v": "text", "n": "number"}
    assert due({"v": "text", "n": "number"}, {"v": "text", "n": "count"}, V, N) == {"n": "count"}
    assert due({"v": "text"}, {}, V, N) == {"v": ""}
    assert due({"v": None, "n": "number"}, {"n": "number"}, V, N) == {"v": ""}


def test_a_dropped_column_keeps_its_comment_and_a_new_one_waits_for_its_rows() -> None:
    assert due({"v": "text"}, {"z": "new"}, N, Column("z", INT)) == {}


def test_a_removed_comment_is_forgotten() -> None:
    one = control({"v": "text", "n": "number"}, V, N)
    written = written_comments(one, due_comments(one, one.schema or schema(), {"n": "count"}))
    assert written == {"n": "count"}


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ((V, N), {"v": "text"}),
        ((V, replace(N, type=LONG)), {"v": "text", "n": None}),
        ((replace(V, type=INT), N), {"v": None}),
        ((Column("v2", TEXT), N), {"v": None, "v2": None}),
        ((N,), {"v": None}),
        ((V, N, Column("z", INT)), {"v": "text", "z": None}),
    ],
    ids=["the same", "another one is wider", "wider", "renamed", "dropped", "added"],
)
def test_the_comment_of_a_changed_column_is_uncertain(later: tuple[Column, ...], expected: dict[str, str]) -> None:
    assert comments_after(control({"v": "text"}, V, N), schema(*later)) == expected
    assert comments_after(control({}, V, N), schema(*later)) == {}


def test_a_control_record_of_an_earlier_version_has_no_comments() -> None:
    plain = to_plain(control({"v": "text"}, V))
    assert from_plain(ControlRecord, plain).comments == {"v": "text"}
    del plain["comments"]
    assert from_plain(ControlRecord, plain).comments == {}


def test_snapshots_of_iceberg_refer_to_the_comments() -> None:
    record = control({"v": "the comment", "n": None}, V, N)
    summary = snapshot_properties(record)
    assert "the comment" not in str(summary)
    assert own_record(summary, table_properties(record), "shop", "t") == record


def test_the_statements_of_databases() -> None:
    key, v = schema(V).columns
    odd = "it's \\ \0"
    assert PostgresSql("s").comment_on("t", v, False, odd) == """COMMENT ON COLUMN t."v" IS E'it''s \\\\ '"""
    assert MysqlSql("s").comment_on("t", key, True, "x") == (
        "ALTER TABLE t MODIFY COLUMN `id` INT NOT NULL COMMENT 'x', ALGORITHM=INSTANT"
    )


def test_a_comment_changes_one_member_of_the_metadata_of_a_delta_table() -> None:
    fields = [{"name": "v", "type": "string", "nullable": True, "metadata": {"other": 1}}]
    metadata = {"schemaString": json.dumps({"fields": fields}), "configuration": {}}
    before = TableMetadata({"minReaderVersion": 1}, metadata)
    after = delta.altered(before, [Alteration(Alter.COMMENT, V, V, comment="it's \\ é")])
    found = [{**fields[0], "metadata": {"other": 1, "comment": "it's \\ é"}}]
    assert json.loads(after.metadata["schemaString"])["fields"] == found and after.protocol == before.protocol
    removed = delta.altered(after, [Alteration(Alter.COMMENT, V, V)])
    assert json.loads(removed.metadata["schemaString"])["fields"] == fields


def test_the_statements_of_spark_need_no_feature_of_the_table() -> None:
    one = Alteration(Alter.COMMENT, V, V, comment="it's \\")
    assert delta.statements("/t", [one], ()) == ("ALTER TABLE delta.`/t` ALTER COLUMN `v` COMMENT 'it\\'s \\\\';",)
