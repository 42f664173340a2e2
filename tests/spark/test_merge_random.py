"""Many random histories at once, cut into windows at random: after every window the copy is the source."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.steps import Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.hand_made import HandMade
from tests.spark.random_histories import Source, Statement, history

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT), Column("w", TEXT)), ("id",))
HISTORIES = 1500
BLOCK = 10
WINDOWS = 4


@pytest.mark.parametrize(("seed", "on_delete"), [(1, OnDelete.HARD), (3, OnDelete.SOFT)])
def test_after_every_window_the_copy_is_the_source(
    spark: SparkSession, tmp_path: Path, seed: int, on_delete: OnDelete
) -> None:
    """Every history has its own block of keys, so that one batch carries a part of all of them. Sometimes the table is
    truncated in the middle of a window."""
    random = Random(seed)
    table = HandMade(spark, tmp_path, SCHEMA, on_delete)
    drawn = [history(random) for _ in range(HISTORIES)]
    sources = [Source(table, number * BLOCK, dict(one.rows)) for number, one in enumerate(drawn)]
    table.copy([row for source in sources for row in source.held()])
    left = [list(one.statements) for one in drawn]
    for window in range(WINDOWS):
        truncate_at = random.choice([None, None, HISTORIES // 2])
        records: list[ChangeRecord] = []
        for number, (source, statements) in enumerate(zip(sources, left, strict=True)):
            if number == truncate_at:
                records.append(table.truncate())
                for one in sources:
                    one.rows.clear()
            records += _window(source, statements, to_the_end=window == WINDOWS - 1)
        result = table.apply(records)
        assert result.outcome is Outcome.DONE, result.problem
        held = _held(table)
        for number, source in enumerate(sources):
            assert held.get(number, []) == [(row["id"], row["v"], row["w"]) for row in source.held()], drawn[number]


def _held(table: HandMade) -> dict[int, list[tuple[object, ...]]]:
    """The live rows of the copy, by history."""
    soft = table.rule.on_delete is OnDelete.SOFT
    held: dict[int, list[tuple[object, ...]]] = {}
    for row in sorted(table.rows(*(["_cdc_deleted"] if soft else [])), key=lambda row: int(row[0])):
        if not soft or not row[3]:
            held.setdefault(row[0] // BLOCK, []).append(row[:3])
    return held


def _window(source: Source, statements: list[Statement], to_the_end: bool) -> list[ChangeRecord]:
    """The records of the statements up to the next cut; takes them off the list."""
    records: list[ChangeRecord] = []
    while statements:
        statement = statements.pop(0)
        records += source.run(statement)
        if statement.cut and not to_the_end:
            break
    return records
