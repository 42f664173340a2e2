"""Rows that must be fetched from the source, on every target: keys without images, gaps, changes without their row."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.control_records import control
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.row_source import RowSource, at, change, gap, key_only
from tests.spark.scripted_table import Row

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, False), Column("v", TEXT), Column("w", TEXT)), ("id",))
CHANGED, NEW, GONE_BEHIND, GAP, LOST, ROWLESS, PLAIN, WAITS = range(1, 9)


def row(key: int, v: str) -> Row:
    return {"id": key, "v": v, "w": "w"}


@pytest.mark.nightly
def test_incomplete_rows_are_fetched_and_released_once_although_the_answer_of_the_commit_is_lost(
    kit: TargetKit, tmp_path: Path
) -> None:
    source = RowSource()
    table = KitTable(kit, tmp_path, SCHEMA, source=source)
    table.copy([row(key, "a") for key in (CHANGED, GONE_BEHIND, GAP, LOST, PLAIN, WAITS)])
    source.rows = {key: (row(key, "fetched"), at(5)) for key in (CHANGED, NEW, GAP, ROWLESS)} | {LOST: (None, at(5))}
    table.land(
        [
            key_only(table, CHANGED),
            key_only(table, NEW),
            key_only(table, GONE_BEHIND),
            table.delete({"id": GONE_BEHIND}),
            gap(table, GAP),
            change(table, 4, id=GAP, w="in the row"),
            change(table, 6, id=GAP, w="on top"),
            gap(table, LOST),
            change(table, 1, id=ROWLESS, v="b"),
            change(table, 1, id=PLAIN, v="b"),
            gap(table, WAITS),
            change(table, 7, id=WAITS, w="held"),
        ]
    )
    table.failing = True  # after a merge that found no row
    job, staged = table.staged()
    assert staged.outcome is Outcome.FAILING and staged.problem and staged.problem.code == "SRC020"
    assert table.merged(job).outcome is Outcome.DONE
    complete = [(CHANGED, "fetched", "w"), (NEW, "fetched", "w"), (GAP, "fetched", "on top"), (ROWLESS, "fetched", "w")]
    complete.append((PLAIN, "b", "w"))
    assert table.rows() == sorted([*complete, (WAITS, "a", "w")])
    assert control(table).carry.counts == {"dirty": 1, "parked": 1, "fetched": 5}

    source.rows[WAITS] = row(WAITS, "fetched"), at(5)
    job, _ = table.staged()
    with kit.lose(reply=True):
        assert table.merged(job).outcome is Outcome.DONE
    assert table.merged(job).outcome is Outcome.FENCED
    assert table.rows() == sorted([*complete, (WAITS, "fetched", "held")])
    assert control(table).carry.waiting == 0
