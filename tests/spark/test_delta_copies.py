"""Full copies into Delta without Spark: the table is as one that Spark made, and every reader finds the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.ddl import table_properties
from airflow_cdc_provider.targets.delta.local_engine import copy as copies
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, StaleToken
from airflow_cdc_provider.targets.delta.local_engine.copy import (
    ReplacedVersion,
    existing_table,
    file_layout,
    new_table,
    prepare_copy,
    write_files,
)
from airflow_cdc_provider.targets.delta.local_engine.log_replay import read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import expected_columns
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from tests.delta_tables import read

pytestmark = pytest.mark.jvm

VALUES: dict[str, tuple[LogicalType, Sequence[Any]]] = {
    "flag": (LogicalType(Kind.BOOLEAN), [True, False, None]),
    "short": (LogicalType(Kind.INT16), [-(2**15), 2**15 - 1, None]),
    "int": (LogicalType(Kind.INT32), [-(2**31), 2**31 - 1, None]),
    "real": (LogicalType(Kind.FLOAT32), [0.5, float("-inf"), None]),
    "double": (LogicalType(Kind.FLOAT64), [0.1, float("inf"), None]),
    "price": (LogicalType(Kind.DECIMAL, 38, 4), [Decimal("-0.0001"), Decimal("9" * 34 + ".9999"), None]),
    "small": (LogicalType(Kind.DECIMAL, 9, 2), [Decimal("1.50"), Decimal("-9999999.99"), None]),
    "text": (LogicalType(Kind.TEXT), ["", "é€𝄞" * 15, 'a"\\\n', None]),
    "doc": (LogicalType(Kind.JSON), ['{"a": 1}', None]),
    "bytes": (LogicalType(Kind.BYTES), [b"", b"\0\xff", None]),
    "day": (LogicalType(Kind.DATE), [date(1, 1, 1), date(9999, 12, 31), None]),
    "at": (LogicalType(Kind.TIMESTAMP), [datetime(1, 1, 1), datetime.max, None]),
    "seen": (LogicalType(Kind.TIMESTAMPTZ), [datetime(1900, 1, 1, 0, 0, 0, 1, UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
    "never": (LogicalType(Kind.INT64), [None]),
}
KEYED = TableSchema(
    "t",
    (
        Column("id", LogicalType(Kind.INT64), nullable=False),
        *(Column(name, kind) for name, (kind, _) in VALUES.items()),
    ),
    ("id",),
)


def settings(schema: TableSchema, soft: bool = False) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
    return tuple(expected_columns(schema, soft)), table_properties(schema, schema.key)


class Copying:
    """Copies into one folder, each under the next token."""

    def __init__(self, folder: Path) -> None:
        self.store = LocalStore(str(folder))
        self.path = str(folder / "t")
        self.token = 0

    def label(self) -> CommitLabel:
        return CommitLabel("app", self.token, json.dumps({"token": self.token}))

    def replaced(self, schema: TableSchema, soft: bool = False) -> ReplacedVersion:
        if self.token == 1:
            return new_table(*settings(schema, soft))
        return existing_table(self.store, "t", *settings(schema, soft))

    def copy(
        self, schema: TableSchema, rows: Sequence[dict[str, Any]], order: Sequence[str] = (), soft: bool = False
    ) -> None:
        self.token += 1
        replaced = self.replaced(schema, soft)
        layout = file_layout(replaced, order, ["text"])
        adds = write_files(self.store, "t", tables(schema, rows, soft), layout)
        assert prepare_copy(self.store, "t", replaced, adds, len(rows), self.label()).commit()

    def log(self, version: int) -> list[dict[str, Any]]:
        content = Path(self.path, "_delta_log", f"{version:020d}.json").read_text()
        return [json.loads(line) for line in content.splitlines()]


def tables(schema: TableSchema, rows: Sequence[dict[str, Any]], soft: bool) -> Iterable[pa.Table]:
    columns = arrow_schema(schema)
    if schema.key:
        columns = columns.append(pa.field(ORDER, pa.string()))
    if soft:
        columns = columns.append(pa.field(DELETED, pa.bool_()))
    for start in range(0, len(rows), 100):
        some = rows[start : start + 100]
        yield pa.Table.from_pylist([{ORDER: "07", DELETED: False, **row} for row in some], columns)


def random_rows(random: Random, number: int) -> list[dict[str, Any]]:
    """In no order."""
    ids = random.sample(range(number), number)
    return [{"id": one, **{name: random.choice(values) for name, (_, values) in VALUES.items()}} for one in ids]


def test_every_reader_finds_every_value(spark: SparkSession, tmp_path: Path) -> None:
    rows = random_rows(Random(7), 500)
    copying = Copying(tmp_path)
    copying.copy(KEYED, rows, order=["id"])
    expected = {row["id"]: {**row, ORDER: "07"} for row in rows}
    assert {row["id"]: row for row in read(DeltaTable(copying.path)).to_pylist()} == expected
    frame = spark.read.format("delta").load(copying.path)
    by_spark = pa.table(frame.toArrow()).cast(pa.schema([*arrow_schema(KEYED), (ORDER, pa.string())]))
    assert {row["id"]: row for row in by_spark.to_pylist()} == expected
    (entry,) = DeltaTable(copying.path).history()
    assert (entry["operation"], entry["operationMetrics"]["numOutputRows"]) == ("WRITE", "500")
    assert DeltaTable(copying.path).transaction_version("app") == 1


def test_a_new_table_has_the_metadata_of_one_that_spark_made(spark: SparkSession, tmp_path: Path) -> None:
    Copying(tmp_path).copy(KEYED, random_rows(Random(1), 10), soft=True)
    ours = read_snapshot(LocalStore(str(tmp_path)), "t")
    frame = spark.read.format("delta").load(str(tmp_path / "t"))
    frame.write.format("delta").options(**table_properties(KEYED, KEYED.key)).save(str(tmp_path / "theirs"))
    theirs = read_snapshot(LocalStore(str(tmp_path)), "theirs")
    assert json.loads(ours.metadata["schemaString"]) == json.loads(theirs.metadata["schemaString"])
    assert ours.metadata["configuration"] == theirs.metadata["configuration"]
    assert {name: _as_set(values) for name, values in ours.protocol.items()} == {
        name: _as_set(values) for name, values in theirs.protocol.items()
    }
    assert _statistics(ours) == _statistics(theirs)


def _as_set(values: Any) -> Any:
    return set(values) if isinstance(values, list) else values


def _statistics(snapshot: Any) -> tuple[int, set[str], set[str], dict[str, int]]:
    """Rows, the columns that have a minimum, those that have a maximum, NULLs per column."""
    stats = [file.stats for file in snapshot.files]
    minima = {name for one in stats for name in one["minValues"]}
    maxima = {name for one in stats for name in one["maxValues"]}
    nulls = {name: sum(one["nullCount"][name] for one in stats) for name in stats[0]["nullCount"]}
    exact = {name: number for name, number in nulls.items() if name not in ("real", "double")}
    return sum(one["numRecords"] for one in stats), minima - {"real", "double"}, maxima - {"real", "double"}, exact


def test_files_are_split_and_sorted_and_have_their_bounds_in_the_statistics(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "RUN_BYTES", 20_000)
    monkeypatch.setattr(copies, "FILE_BYTES", 40_000)
    monkeypatch.setattr(copies, "GROUP_ROWS", 50)
    copying = Copying(tmp_path)
    copying.copy(KEYED, random_rows(Random(3), 4000), order=["id"])
    files = [one["add"] for one in copying.log(0) if "add" in one]
    assert len(files) > 3 and sum(json.loads(one["stats"])["numRecords"] for one in files) == 4000
    for one in files:
        file = Path(copying.path, one["path"])
        assert file.stat().st_size == one["size"]
        ids, stats = pq.read_table(file)["id"].to_pylist(), json.loads(one["stats"])
        assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (min(ids), max(ids))
        runs = 1 + sum(before > after for before, after in pairwise(ids))
        assert runs <= len(ids) / 50, "a file is some runs of sorted rows"
    frame = spark.read.format("delta").load(copying.path)
    for number in (0, 1234, 3999):
        assert frame.where(f"id = {number}").count() == 1


def test_a_copy_over_a_table_replaces_rows_columns_and_settings(spark: SparkSession, tmp_path: Path) -> None:
    copying = Copying(tmp_path)
    copying.copy(KEYED, random_rows(Random(1), 20))
    spark.sql(f"DELETE FROM delta.`{copying.path}` WHERE id = 3")
    spark.sql(
        f"ALTER TABLE delta.`{copying.path}` SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 9 days')"
    )
    narrow = TableSchema("t", (Column("id", LogicalType(Kind.TEXT)), Column("new", LogicalType(Kind.INT32))), ("id",))
    copying.copy(narrow, [{"id": "a", "new": 1}, {"id": "b", "new": None}], soft=True)
    found = sorted(read(DeltaTable(copying.path)).to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": "a", "new": 1, ORDER: "07", DELETED: False},
        {"id": "b", "new": None, ORDER: "07", DELETED: False},
    ]
    settings = DeltaTable(copying.path).metadata().configuration
    assert settings["delta.logRetentionDuration"] == "interval 9 days"
    assert settings["delta.dataSkippingStatsColumns"] == "`id`,`new`"
    before = spark.read.format("delta").option("versionAsOf", 1).load(copying.path)
    assert (before.count(), "price" in before.columns) == (19, True)
    assert spark.read.format("delta").load(copying.path).where("id = 'b'").count() == 1


def test_a_copy_of_no_rows_empties_the_table(tmp_path: Path) -> None:
    copying = Copying(tmp_path)
    copying.copy(KEYED, random_rows(Random(1), 20))
    copying.copy(KEYED, [])
    assert DeltaTable(copying.path).file_uris() == []
    assert [field.name for field in DeltaTable(copying.path).schema().fields] == [*KEYED.names, ORDER]


def test_a_copy_with_an_outdated_token_is_not_prepared(tmp_path: Path) -> None:
    """The commit reads the table again: only that read sees the newest token."""
    copying = Copying(tmp_path)
    for _ in range(2):
        copying.copy(KEYED, [])
    for passed in (1, 2):
        copying.token = passed
        replaced = existing_table(copying.store, "t", *settings(KEYED))
        with pytest.raises(StaleToken):
            prepare_copy(copying.store, "t", replaced, [], 0, copying.label())


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
    ],
)
def test_a_table_that_requires_more_of_its_writers_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    copying = Copying(tmp_path)
    copying.copy(KEYED, [])
    spark.sql(statement.format(t=f"delta.`{copying.path}`"))
    copying.token += 1
    with pytest.raises(NeedsSpark):
        copying.replaced(KEYED)


def test_a_table_without_times_that_gets_some_is_left_to_spark(tmp_path: Path) -> None:
    copying = Copying(tmp_path)
    plain = TableSchema("t", (Column("id", LogicalType(Kind.INT64)),), ("id",))
    copying.copy(plain, [{"id": 1}])
    copying.token += 1
    copying.replaced(plain)
    with pytest.raises(NeedsSpark, match="timestampNtz"):
        copying.replaced(KEYED)


def test_a_full_disk_is_reported_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.touch()
    monkeypatch.setenv(TOKEN, str(token))
    monkeypatch.setenv(ARMED, "target.write=enospc@2")
    copying = Copying(tmp_path)
    with pytest.raises(TargetUnavailable, match=r"TGT025.*No space left"):
        copying.copy(KEYED, random_rows(Random(1), 500))
    copying.token = 0
    copying.copy(KEYED, random_rows(Random(1), 500))
    assert DeltaTable(copying.path).history()[0]["operationMetrics"]["numFiles"] == "1"
