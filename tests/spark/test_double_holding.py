"""Keys that two rows hold within a transaction: at its end each key belongs to the right row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column
from tests.model import seeds
from tests.spark.contract.double_cases import COLUMNS, DOUBLE, TEXT, DoubleKeyChanges, row
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm


def test_two_rows_that_both_stay_stop_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """The key of the definition is not unique."""
    table = ScriptedTable(spark, tmp_path, DOUBLE)
    table.copy([row(1, "x")])
    writer = DoubleKeyChanges(table)
    changes = [
        writer.insert(row(1, "p"), ""),
        writer.insert(row(1, "q"), ""),
        writer.delete(row(1, "x"), ""),
    ]
    result = table.apply([writer.transaction(*changes)])
    assert result.outcome is Outcome.BLOCKED
    assert result.problem is not None and result.problem.code == "TGT036"
    assert table.rows() == [(1, "x")]


def test_a_departure_with_unknown_columns_stops_the_table(spark: SparkSession, tmp_path: Path) -> None:
    wide = replace(DOUBLE, columns=(*COLUMNS, Column("w", TEXT)))
    table = ScriptedTable(spark, tmp_path, wide)
    table.copy([row(1, "x") | {"w": "W"}, row(2, "y") | {"w": "V"}])
    writer = DoubleKeyChanges(table, by_id=True)
    changes = [
        writer.move(row(1, "x"), row(2, "x"), "rx", complete=False),
        writer.move(row(2, "y"), row(1, "y"), "ry", complete=False),
    ]
    result = table.apply([writer.transaction(*changes)])
    assert result.problem is not None and result.problem.code == "TGT036"


HISTORIES, KEYS, TRANSACTIONS = 300, 4, 4


@pytest.mark.parametrize("on_delete", [OnDelete.HARD, OnDelete.SOFT])
def test_rows_equal_the_source_after_random_transactions(
    spark: SparkSession, tmp_path: Path, on_delete: OnDelete
) -> None:
    """Every history has its own keys. Within a transaction its rows take any of them; at its end no two rows have
    the same key."""
    random = Random(seed := seeds.seed())
    print(f"again: {seeds.SEED}={seed}")
    table = ScriptedTable(spark, tmp_path, DOUBLE, on_delete)
    writer = DoubleKeyChanges(table)
    rows_by_history = [_start(random, number * KEYS) for number in range(HISTORIES)]
    table.copy([one for rows in rows_by_history for one in rows])
    for _ in range(2):
        records: list[ChangeRecord | list[ChangeRecord]] = []
        for number, rows in enumerate(rows_by_history):
            for _ in range(random.randrange(TRANSACTIONS)):
                records.append(writer.transaction(*_transaction(random, writer, rows, number * KEYS)))
        result = table.apply(records)
        assert result.outcome is Outcome.DONE, result.problem
        soft = on_delete is OnDelete.SOFT
        found = [one[:2] for one in table.rows(*(["_cdc_deleted"] if soft else [])) if not soft or not one[2]]
        assert sorted(found) == sorted((one["id"], one["v"]) for rows in rows_by_history for one in rows)


def _start(random: Random, base: int) -> list[Row]:
    return [row(base + key, random.choice("ab")) for key in range(KEYS) if random.random() < 0.6]


def _transaction(random: Random, writer: DoubleKeyChanges, rows: list[Row], base: int) -> list[list[ChangeRecord]]:
    """Changes ``rows`` in place. There are few values, so that equal rows occur."""
    changes = []
    for _ in range(random.randrange(6)):
        key, value = base + random.randrange(KEYS), random.choice("ab")
        if not rows or random.random() < 0.2:
            rows.append(row(key, value))
            changes.append(writer.insert(rows[-1], ""))
            continue
        old = rows.pop(random.randrange(len(rows)))
        if random.random() < 0.2:
            changes.append(writer.delete(old, ""))
            continue
        new = row(key, random.choice((value, old["v"])))
        rows.append(new)
        changes.append(writer.update(old, new, "") if new["id"] == old["id"] else writer.move(old, new, ""))
    while doubles := [one for one in rows if sum(other["id"] == one["id"] for other in rows) > 1]:
        gone = random.choice(doubles)
        rows.remove(gone)
        changes.append(writer.delete(gone, ""))
    return changes
