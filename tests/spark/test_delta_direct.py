"""Merges into a Delta table without Spark: the table remains a table of Spark, and equals a model."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import KNOWN, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.local_engine import key_lookup
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, StaleToken
from airflow_cdc_provider.targets.delta.local_engine.data_file import PREFIX
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import (
    UnreadableVector,
    read_vector,
    write_vectors,
)
from airflow_cdc_provider.targets.delta.local_engine.log_replay import read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.merge import prepare_merge
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import require_table
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from tests.delta_tables import read
from tests.model import seeds
from tests.spark.merged_table import KINDS, MergedTable

pytestmark = pytest.mark.jvm

KEYS = [
    ("number",), ("text",), ("day",), ("moment",), ("price",), ("bytes", "short"), ("flag", "number"),
    ("maybe", "text", "number"), ("number", "maybe"), ("short", "day", "moment", "price", "text"),
]  # fmt: skip


IN_EVERY_RUN = {(KEYS[-1], False)}
"""All types of columns are in the last key; the others come in the nightly run."""


@pytest.mark.parametrize(
    ("key", "soft"),
    [
        pytest.param(
            *(key, soft),
            id=f"{'-'.join(key)}-{'soft' if soft else 'hard'}",
            marks=[] if (key, soft) in IN_EVERY_RUN else [pytest.mark.nightly],
        )
        for key in KEYS
        for soft in (False, True)
    ],
)
def test_random_merges_equal_the_model(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...], soft: bool
) -> None:
    monkeypatch.setattr("airflow_cdc_provider.targets.delta.local_engine.data_file.GROUP_ROWS", 64)
    random = Random(f"{seeds.seed()} {key} {soft}")
    print(f"again: {seeds.SEED}={seeds.seed()}")
    table = MergedTable(spark, tmp_path, key, soft)
    table.create([table.row(random, number, number) for number in range(300)], checkpointInterval="5")
    for turn in range(5):
        numbers = random.sample(range(400), random.choice([0, 1, 5, 90, 350]))
        table.merge(table.staged(random, numbers, 400 + 80 * turn), not_older=turn % 3 == 2)
        if turn == 4:
            spark.sql(f"UPDATE delta.`{table.path}` SET v = 'Spark' WHERE v = ''")
            for row in table.model.values():
                row["v"] = "Spark" if row["v"] == "" else row["v"]
    table.check_read_by_deltalake()
    check_file_skipping(table, random)
    spark.sql(f"OPTIMIZE delta.`{table.path}`")
    spark.sql(f"REORG TABLE delta.`{table.path}` APPLY (PURGE)")
    table.merge(table.staged(random, random.sample(range(400), 90), 1600))
    table.check_read_by_deltalake()


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_random_merges_of_partial_rows_equal_the_model(spark: SparkSession, tmp_path: Path, soft: bool) -> None:
    random = Random(seeds.seed())
    print(f"again: {seeds.SEED}={seeds.seed()}")
    table = MergedTable(spark, tmp_path, ("number",), soft)
    table.create([table.row(random, number, number) for number in range(60)])
    for turn in range(8):
        numbers = random.sample(range(90), random.choice([1, 5, 40]))
        table.merge(table.staged(random, numbers, 100 + 80 * turn, partial=True))
        table.check_read_by_deltalake()
    if not soft:
        table.merge(table.staged(random, random.sample(range(90), 30), 9_000).filter(above(5_000)), truncated=True)
        table.check_read_by_deltalake()


def above(order: int) -> pc.Expression:
    return pc.field(ORDER) > f"{order:06d}"


def check_file_skipping(table: MergedTable, random: Random) -> None:
    """Spark skips files by the statistics that the driver wrote."""
    kinds = {name: KINDS[name][0] for name in table.key}
    found = []
    for number, row in enumerate(random.sample(list(table.model.values()), 3)):
        wanted = table.frame()
        for name in table.key:
            value = row[name]
            if kinds[name].kind is Kind.TIMESTAMPTZ:
                micros = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
                wanted = wanted.where(f"{name} = timestamp_micros({micros})")
            else:
                wanted = wanted.where(wanted[name].eqNullSafe(value))
        found.append(wanted.selectExpr(f"{number}"))
    assert sorted(number for (number,) in reduce(DataFrame.union, found).collect()) == [0, 1, 2]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> MergedTable:
    table = MergedTable(spark, tmp_path, ("number",), soft=False)
    table.create([table.row(Random(1), number, number) for number in range(20)])
    return table


def test_of_two_merges_of_one_version_the_second_is_refused(table: MergedTable) -> None:
    random = Random(1)
    first, second = (table.prepared(table.staged(random, [1, 2], 99)) for _ in range(2))
    assert first.commit() and not second.commit()
    assert first.commit(), "a retry after a lost answer"
    assert DeltaTable(table.path).transaction_version("app") == 1


def test_a_token_that_is_not_above_the_recorded_one_is_refused(table: MergedTable) -> None:
    staged = table.staged(Random(1), [1], 99)
    table.merge(staged)
    for token in (0, 1):
        with pytest.raises(StaleToken):
            prepare_merge(table.store, "t", staged, table.plan, CommitLabel("app", token, "{}"))
    prepare_merge(table.store, "t", staged, table.plan, CommitLabel("other", 0, "{}"))


@pytest.mark.parametrize(
    "ask",
    [
        "ALTER TABLE {t} ADD COLUMNS (more INT)",
        "ALTER TABLE {t} ADD CONSTRAINT small CHECK (number < 1000)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.domainMetadata' = 'supported')",
    ],
)
def test_a_table_that_requires_more_of_its_writers_is_left_to_spark(table: MergedTable, ask: str) -> None:
    staged = table.staged(Random(1), [1], 99)
    table.prepared(staged)
    table.spark.sql(ask.format(t=f"delta.`{table.path}`"))
    with pytest.raises(NeedsSpark):
        table.prepared(staged)


def test_a_table_with_rules_for_a_column_is_left_to_spark(table: MergedTable) -> None:
    snapshot = read_snapshot(table.store, "t")
    require_table(snapshot, table.schema, soft=False)
    fields = json.loads(snapshot.metadata["schemaString"])["fields"]
    for rule in ({"nullable": False}, {"type": "integer"}, {"metadata": {"delta.generationExpression": "1"}}):
        written = json.dumps({"fields": [{**fields[0], **rule}, *fields[1:]]})
        ruled = replace(snapshot, metadata={**snapshot.metadata, "schemaString": written})
        with pytest.raises(NeedsSpark, match="other columns"):
            require_table(ruled, table.schema, soft=False)


@pytest.mark.parametrize(
    "more",
    [
        {"truncated": True, "on_delete": OnDelete.SOFT},
        {"truncated": True, "not_older": True},
        {"added": (Column("x", LogicalType(Kind.TEXT), initial='"y"'),)},
        {"added": (Column("a b", LogicalType(Kind.TEXT)),)},
    ],
)
def test_a_plan_that_requires_more_is_left_to_spark(table: MergedTable, more: dict[str, Any]) -> None:
    with pytest.raises(NeedsSpark):
        table.prepared(table.staged(Random(1), [1], 99), **more)


def test_a_column_is_added_by_the_commit_that_first_has_it(table: MergedTable) -> None:
    column = Column("x", LogicalType(Kind.TEXT))
    schema = replace(table.schema, columns=(*table.schema.columns, column))
    rows = [{**table.row(Random(1), number, 99), "x": "new", OP: LIVE} for number in (1, 50)]
    columns = pa.schema([*table.columns, ("x", pa.string()), (OP, pa.string()), (KNOWN, pa.list_(pa.string()))])
    one, two, new = (table.row(Random(1), number, 0)["number"] for number in (1, 2, 50))
    rows += [{"number": two, "x": "known", ORDER: "000099", OP: LIVE, KNOWN: ["number", "x"]}]
    staged = pa.Table.from_pylist(rows, columns)
    prepared = table.prepared(staged, schema=schema, added=(column,), partial=True)
    assert prepared.commit()
    values = {row["number"]: row["x"] for row in table.frame().collect()}
    assert values == dict.fromkeys(key for (key,) in table.model) | {one: "new", two: "known", new: "new"}
    assert {row["number"]: row["x"] for row in read(DeltaTable(table.path)).to_pylist()} == values
    assert [row["v"] for row in table.frame().where(f"number = {two}").collect()] == [table.model[(two,)]["v"]]


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_a_file_that_another_library_has_written_is_read_too(spark: SparkSession, tmp_path: Path, soft: bool) -> None:
    random = Random(3)
    table = MergedTable(spark, tmp_path, ("text", "number"), soft)
    table.create([table.row(random, number, number) for number in range(20)])
    DeltaTable(table.path).update(updates={"v": "'by others'"}, predicate="number < 1000")
    for row in table.model.values():
        row["v"] = "by others"
    table.merge(table.staged(random, list(range(30)), 99))
    table.check_read_by_deltalake()


def test_a_duplicate_key_is_left_to_spark(table: MergedTable) -> None:
    table.spark.sql(f"INSERT INTO delta.`{table.path}` SELECT * FROM delta.`{table.path}` WHERE number = -49")
    with pytest.raises(NeedsSpark, match="several rows with one key"):
        table.prepared(table.staged(Random(1), [1], 99))
    table.prepared(table.staged(Random(1), [2], 99))


def test_files_and_groups_whose_range_holds_no_key_are_not_read(
    table: MergedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.merge(table.staged(Random(1), list(range(500, 700)), 99))
    touched: list[str] = []
    monkeypatch.setattr(key_lookup.KeySet, "matches", lambda self, store, table, file: touched.append(file.path))
    table.prepared(table.staged(Random(1), [10_000], 99))
    assert touched == []
    table.prepared(table.staged(Random(1), [501], 99))
    assert len(touched) == 1


def test_a_table_is_read_from_a_checkpoint_as_from_its_commits(table: MergedTable) -> None:
    random = Random(2)
    for _ in range(3):
        table.merge(table.staged(random, random.sample(range(20), 5), 99))
    before = read_snapshot(table.store, "t")
    assert any(file.vector for file in before.files)
    DeltaTable(table.path).create_checkpoint()
    for commit in Path(table.path, "_delta_log").glob("*.json"):
        commit.unlink()
    after = read_snapshot(table.store, "t")
    assert (after.version, after.tokens) == (before.version, before.tokens)
    assert {file.path: file.add for file in after.files} == {file.path: file.add for file in before.files}
    table.merge(table.staged(random, [1, 2, 3], 999))
    table.check_read_by_deltalake()
    assert table.frame().count() == len(table.model)


def test_a_text_that_is_truncated_in_the_statistics_is_found(table: MergedTable) -> None:
    texts = MergedTable(table.spark, table.folder / "texts", ("text",), soft=False)
    texts.create([])
    texts.merge(texts.staged(Random(1), [1, 2, 3], 9))
    texts.merge(texts.staged(Random(1), [1, 2, 3], 99))
    texts.check_read_by_deltalake()
    assert all(len(key[0]) > PREFIX for key in texts.model)


def test_vectors_are_read_as_written_and_a_damaged_one_is_detected(tmp_path: Path) -> None:
    store, random = LocalStore(str(tmp_path)), Random(seeds.seed())
    wanted = [
        np.array([0]), np.arange(100_000), np.array(sorted(random.sample(range(2**33), 5_000))),
        np.array(sorted(random.sample(range(70_000), 30_000))),
    ]  # fmt: skip
    written = write_vectors(store, "t", wanted)
    for positions, descriptor in zip(wanted, written, strict=True):
        assert descriptor["cardinality"] == len(positions)
        assert np.array_equal(read_vector(store, "t", descriptor), positions)
    (file,) = tmp_path.glob("t/deletion_vector_*.bin")
    content = bytearray(file.read_bytes())
    content[written[1]["offset"] + 20] ^= 1
    file.write_bytes(content)
    assert np.array_equal(read_vector(store, "t", written[0]), wanted[0])
    with pytest.raises(UnreadableVector, match="damaged"):
        read_vector(store, "t", written[1])


def test_a_vector_s_file_is_named_as_the_protocol_s_example(tmp_path: Path) -> None:
    (tmp_path / "t/ab").mkdir(parents=True)
    (descriptor,) = write_vectors(LocalStore(str(tmp_path)), "t", [np.array([1, 5])])
    (file,) = tmp_path.glob("t/deletion_vector_*.bin")
    file.rename(tmp_path / "t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
    descriptor["pathOrInlineDv"] = "ab^-aqEH.-t@S}K{vb[*k^"
    assert read_vector(LocalStore(str(tmp_path)), "t", descriptor).tolist() == [1, 5]


def test_statistics_are_json_of_all_digits(table: MergedTable) -> None:
    wide = MergedTable(table.spark, table.folder / "wide", ("price",), soft=False)
    wide.create([])
    wide.merge(wide.staged(Random(1), list(range(1, 40)), 99))
    snapshot = read_snapshot(wide.store, "t")
    (stats,) = [file.add["stats"] for file in snapshot.files if file.rows]
    written = json.loads(stats, parse_float=Decimal)
    prices = [key[0] for key in wide.model]
    assert (written["minValues"]["price"], written["maxValues"]["price"]) == (min(prices), max(prices))
