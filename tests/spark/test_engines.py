"""Which engine folds and merges a batch of a Delta table, and with which reason Spark does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import TableResult
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import OnBadRecord, OnDelete
from airflow_cdc_provider.core.spec.engines import EngineMode, EngineName
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.spark.bad_records import unreadable
from tests.spark.contract.test_types import FIELDS, KEY
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm

TYPES = {name: kind for name, (kind, _, _) in FIELDS.items() if " " not in name}
"""Names with blanks require column mapping, which the driver does not write."""
EVERY_TYPE = TableSchema("public.t", (KEY, *(Column(name, kind) for name, kind in TYPES.items())), ("id",))
KEYLESS = replace(EVERY_TYPE, key=())
SMALL = TableSchema(
    "public.t", tuple(Column(name, LogicalType(Kind.TEXT), nullable=name != "id") for name in ("id", "v", "w")), ("id",)
)
Records = Sequence[ChangeRecord | list[ChangeRecord]]


def wide(index: int) -> dict[str, Any]:
    return {"id": index, **{name: FIELDS[name][1][index] for name in TYPES}}


def small(key: str, v: str = "v") -> dict[str, Any]:
    return {"id": key, "v": v, "w": "w"}


def without_key(table: ScriptedTable) -> Records:
    return [table.insert(wide(0)), table.delete(wide(0)), table.update(wide(1), before=wide(0))]


def swapped_keys(table: ScriptedTable) -> Records:
    return [
        table.move({"id": "a"}, small("x")),
        table.move({"id": "b"}, small("a")),
        table.move({"id": "x"}, small("b")),
    ]


def added_column(table: ScriptedTable) -> Records:
    more = Column("z", LogicalType(Kind.TEXT))
    altered = table.alter(replace(SMALL, columns=(*SMALL.columns, more)))
    return [altered, table.update({**small("a"), "z": "new"})]


BY_THE_DRIVER: dict[str, tuple[TableSchema, OnDelete, Callable[[ScriptedTable], Records]]] = {
    "values of every type": (EVERY_TYPE, OnDelete.HARD, lambda t: [t.update(wide(0)), t.insert({**wide(1), "id": 7})]),
    "a table without a key": (KEYLESS, OnDelete.HARD, without_key),
    "swapped keys": (SMALL, OnDelete.HARD, swapped_keys),
    "partial images": (SMALL, OnDelete.HARD, lambda t: [t.update({"id": "a", "v": "1"}, complete=False)]),
    "a key change without all columns": (
        SMALL,
        OnDelete.SOFT,
        lambda t: [t.move({"id": "a"}, {"id": "c", "v": "1"}, complete=False)],
    ),
    "several changes of a soft-deleted key": (
        SMALL,
        OnDelete.SOFT,
        lambda t: [t.update(small("a", "last")), t.delete({"id": "a"})],
    ),
    "an added column": (SMALL, OnDelete.HARD, added_column),
    "a truncate": (SMALL, OnDelete.HARD, lambda t: [t.truncate(), t.insert(small("c"))]),
    "a source without ordered delivery": (
        replace(SMALL, regime=Regime.UNORDERED),
        OnDelete.HARD,
        lambda t: [t.update(small("a", "1")), t.delete({"id": "b"})],
    ),
    "a bad record": (
        SMALL,
        OnDelete.HARD,
        lambda t: [unreadable(t.update(small("a")), "v"), t.update(small("b", "2"))],
    ),
}


def copied(spark: SparkSession, folder: Path, schema: TableSchema, on_delete: OnDelete) -> ScriptedTable:
    table = ScriptedTable(spark, folder, schema, on_delete, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([wide(0), wide(1)] if "i2" in schema.names else [small("a"), small("b")])
    return table


def engines(table: ScriptedTable, records: Records) -> list[str]:
    table.land(records)
    job, staged = table.staged()
    return [described(staged), described(table.merged(job))]


def described(result: TableResult) -> str:
    assert result.engine is not None, result
    return result.engine.reason or str(result.engine.engine)


@pytest.mark.parametrize(("schema", "on_delete", "records"), BY_THE_DRIVER.values(), ids=list(BY_THE_DRIVER))
def test_a_small_batch_needs_no_spark(
    spark: SparkSession,
    tmp_path: Path,
    schema: TableSchema,
    on_delete: OnDelete,
    records: Callable[[ScriptedTable], Records],
) -> None:
    table = copied(spark, tmp_path, schema, on_delete)
    assert engines(table, records(table)) == [EngineName.LOCAL, EngineName.LOCAL]


def test_records_that_waited_need_no_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = copied(spark, tmp_path, SMALL, OnDelete.HARD)
    engines(table, [unreadable(table.update(small("a")), "v"), table.update({"id": "a", "w": "1"}, complete=False)])
    assert engines(table, [table.update(small("a", "whole"))]) == [EngineName.LOCAL, EngineName.LOCAL]
    assert table.rows()[0] == ("a", "whole", "w")


def test_spark_names_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    table = copied(spark, tmp_path, SMALL, OnDelete.SOFT)
    assert engines(table, [table.truncate()])[1] == "a truncate of soft-deleted rows"
    table.use(EngineMode.SPARK)
    assert engines(table, [table.insert(small("d"))]) == ["`engine: spark`", "`engine: spark`"]
    assert table.rows()[-1] == ("d", "v", "w")
