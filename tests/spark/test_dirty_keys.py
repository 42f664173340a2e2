"""Rows that must be fetched from the source: their fetches, the changes that wait for them, and the older changes
that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import OnBadRecord, OnDelete
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.bad_records import decide, unreadable
from tests.spark.contract.control_records import control, require_accounted
from tests.spark.contract.sessions import small_session
from tests.spark.row_source import RowSource, at, change, gap, key_only
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, False), Column("v", TEXT), Column("w", TEXT)), ("id",))


def row(key: int, v: str | None, w: str | None = "w") -> Row:
    return {"id": key, "v": v, "w": w}


def copied_table(spark: SparkSession, folder: Path, *keys: int, **more: Any) -> tuple[ScriptedTable, RowSource]:
    source = RowSource()
    table = ScriptedTable(small_session(spark), folder, SCHEMA, source=source, **more)
    table.copy([row(key, "a") for key in keys])
    return table, source


def waiting(table: ScriptedTable) -> dict[str, int]:
    """The counts of the carry-over. Every record of the last batch is counted in exactly one category."""
    require_accounted(control(table))
    return control(table).carry.counts


def batch(table: ScriptedTable, records: Sequence[ChangeRecord] = ()) -> TableResult:
    """Land, stage, and merge what was staged. Returns the result of the stage."""
    if records:
        table.land(records)
    job, staged = table.staged()
    if staged.detail:
        assert table.merged(job).outcome is Outcome.DONE
    return staged


def test_the_row_is_fetched_and_newer_changes_apply_to_it(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2)
    source.rows[1] = row(1, "fetched", "fetched"), at(10)
    before = [change(table, 1, id=1, v="1"), change(table, 1, id=2, v="b")]
    behind = [gap(table, 1, 2), change(table, 9, id=1, v="9"), change(table, 11, id=1, w="11")]
    assert batch(table, before + behind).outcome is Outcome.DONE
    assert table.rows() == [(1, "fetched", "11"), (2, "b", "w")]
    assert (source.fetched, waiting(table)) == ([("[1]",)], {"fetched": 1})


def test_a_row_that_cannot_be_fetched_waits_with_its_changes_and_nothing_else_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2, 3)
    source.away = True
    source.rows[3] = row(3, "in time"), at(1)
    before = [change(table, 0, id=1, v="before"), change(table, 5, id=2, v="b")]
    staged = batch(table, [*before, gap(table, 1), gap(table, 3), change(table, 5, id=1, v="held")])
    assert staged.outcome is Outcome.FAILING and staged.problem and staged.problem.code == "SRC999"
    assert table.rows() == [(1, "before", "w"), (2, "b", "w"), (3, "in time", "w")]
    assert waiting(table) == {"dirty": 1, "parked": 1, "fetched": 1}
    before = control(table)
    assert table.staged()[1].outcome is Outcome.FAILING and control(table) == before, "no change: no commit"
    staged = batch(table, [change(table, 6, id=1, w="held")])
    assert staged.outcome is Outcome.FAILING and waiting(table) == {"dirty": 1, "parked": 2, "fetched": 1}
    source.away = False
    assert table.staged()[1].problem.code == "SRC020", "it answered, without this row"  # type: ignore[union-attr]
    source.rows[1] = row(1, "fetched"), at(5)
    fence = control(table).fence
    assert batch(table).outcome is Outcome.DONE and control(table).fence > fence
    assert table.rows() == [(1, "held", "held"), (2, "b", "w"), (3, "in time", "w")]
    assert waiting(table) == {"fetched": 2}
    assert table.staged()[1].outcome is Outcome.UNCHANGED


def test_changes_from_before_the_fetch_are_ignored_in_later_windows(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1)
    source.rows[1] = row(1, "fetched", "fetched"), at(10)
    batch(table, [gap(table, 1)])
    batch(table, [change(table, 8, id=1, v="8")])
    assert table.rows() == [(1, "fetched", "fetched")] and waiting(table) == {"fetched": 1}
    batch(table, [change(table, 9, id=1, w="9"), change(table, 10, id=1, v="10")])
    assert table.rows() == [(1, "10", "fetched")] and waiting(table) == {}, "no later window started before it"


def test_changes_from_before_the_fetch_are_ignored_until_a_window_ends_where_the_source_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, source = copied_table(spark, tmp_path, 1)
    source.rows[1] = row(1, "fetched", "fetched"), at(10)
    batch(table, [gap(table, 1)])
    for second in (5, 6, 7):
        table.land([change(table, second, id=1, v=f"{second}")], cut="size")
        batch(table)
    assert table.rows() == [(1, "fetched", "fetched")] and waiting(table) == {"fetched": 1}
    batch(table, [change(table, 9, id=1, w="9"), change(table, 10, id=1, v="10")])
    assert table.rows() == [(1, "10", "fetched")] and waiting(table) == {}


def test_a_copy_is_consistent_after_a_window_that_ends_where_the_source_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = ScriptedTable(small_session(spark), tmp_path, SCHEMA)
    table.copy([row(1, "a")], high=2)
    highs = []
    for cut in ("", "size", "overflow", "", "size"):
        table.land([change(table, 1, id=1, v=cut)], cut=cut)
        batch(table)
        highs.append(control(table).high)
    assert highs == [2, 3, 4, 4, 4], "the fourth window ends there"


def test_a_row_that_is_gone_is_flagged_comes_back_and_changes_again(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2, on_delete=OnDelete.SOFT)
    source.rows[1] = None, at(10)
    batch(table, [gap(table, 1), change(table, 3, id=1, v="lost"), change(table, 3, id=2, v="b")])
    assert table.rows("_cdc_deleted") == [(1, "a", "w", True), (2, "b", "w", False)]
    again = table.insert(row(1, "again"))
    again.commit_ts = at(11)
    batch(table, [again])
    assert table.rows("_cdc_deleted") == [(1, "again", "w", False), (2, "b", "w", False)]
    batch(table, [change(table, 9, id=1, w="old"), change(table, 12, id=1, v="and changed")])
    assert table.rows("_cdc_deleted") == [(1, "and changed", "w", False), (2, "b", "w", False)]


def test_columns_that_were_not_sent_are_fetched_for_a_new_row_too(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1)
    born, changed = table.insert(row(2, None)), change(table, 1, id=1)
    born.refetch, changed.refetch = ("v",), ("v", "w")
    staged = batch(table, [born, changed, change(table, 2, id=2, w="x")])
    assert staged.outcome is Outcome.FAILING and staged.problem and "v" in staged.problem.found
    assert table.rows() == [(1, "a", "w")] and waiting(table) == {"dirty": 2, "parked": 1}
    source.rows = {1: (row(1, "long", "text"), at(1)), 2: (row(2, "long"), at(1))}
    assert batch(table).outcome is Outcome.DONE
    assert table.rows() == [(1, "long", "text"), (2, "long", "x")]


def test_no_row_is_fetched_if_a_later_change_contains_or_deletes_it(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2)
    batch(table, [gap(table, 1), gap(table, 2), table.delete({"id": 1}), table.update(row(2, "whole"))])
    assert (table.rows(), source.fetched, waiting(table)) == ([(2, "whole", "w")], [], {})


def incomplete(table: ScriptedTable, key: int, v: str) -> ChangeRecord:
    """Its value of ``w`` was not sent."""
    record = change(table, 1, id=key, v=v)
    record.refetch = ("w",)
    return record


def test_a_delete_that_is_ignored_needs_no_row_and_leaves_what_is_known(spark: SparkSession, tmp_path: Path) -> None:
    """In one run with its change, and in a later one."""
    table, source = copied_table(spark, tmp_path, 1, 2, 3, on_delete=OnDelete.IGNORE)
    one_run = [incomplete(table, 1, "known"), gap(table, 3), key_only(table, 9)]
    staged = batch(table, [*one_run, *(table.delete({"id": key}) for key in (1, 3, 9))])
    assert (staged.outcome, source.fetched, waiting(table)) == (Outcome.DONE, [], {})
    assert batch(table, [incomplete(table, 2, "known"), gap(table, 3)]).outcome is Outcome.FAILING
    assert batch(table, [table.delete({"id": 2}), table.delete({"id": 3})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "known", "w"), (2, "known", "w"), (3, "a", "w")]
    assert waiting(table) == {}


def test_a_row_that_the_source_has_deleted_keeps_what_is_known_where_deletes_are_ignored(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, source = copied_table(spark, tmp_path, 1, on_delete=OnDelete.IGNORE)
    assert batch(table, [incomplete(table, 1, "known"), change(table, 2, id=1, w="later")]).outcome is Outcome.FAILING
    source.rows[1] = None, at(10)
    assert batch(table).outcome is Outcome.DONE
    assert table.rows() == [(1, "known", "later")] and waiting(table) == {}
    assert batch(table, [table.delete({"id": 1})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "known", "later")]


def test_a_change_without_its_row_is_dropped_where_its_delete_is_ignored(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, on_delete=OnDelete.IGNORE)
    source.rows[8] = None, at(10)
    records = [
        incomplete(table, 7, "x"),
        table.delete({"id": 7}),
        change(table, 1, id=8, v="x"),
        change(table, 1, id=1, v="b"),
    ]
    result = table.apply(records)
    assert result.problem and result.problem.code == "TGT032"
    table.failing = True
    assert batch(table).outcome is Outcome.DONE
    assert table.rows() == [(1, "b", "w")]


def test_a_change_without_its_row_causes_a_fetch_in_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2, on_delete=OnDelete.SOFT)
    batch(table, [table.delete({"id": 2})])
    source.rows = {2: (row(2, "back"), at(2)), 7: (row(7, "there"), at(2)), 8: (None, at(2))}
    result = table.apply([change(table, 1, id=key, v="x") for key in (1, 2, 7, 8)])
    assert result.outcome is Outcome.FAILING and result.problem and result.problem.code == "TGT032"
    assert source.fetched == [] and table.rows("_cdc_deleted") == [(1, "a", "w", False), (2, "a", "w", True)]
    table.failing = True
    assert batch(table).outcome is Outcome.DONE
    assert sorted(source.fetched[0]) == ["[2]", "[7]", "[8]"]
    wanted = [(1, "x", "w", False), (2, "back", "w", False), (7, "there", "w", False)]
    assert table.rows("_cdc_deleted") == wanted


def test_a_change_without_its_row_waits_for_its_delete_while_the_copy_is_not_consistent(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The source cannot fetch rows."""
    table = ScriptedTable(small_session(spark), tmp_path, SCHEMA)
    table.copy([row(1, "a")], high=3)
    results = [table.apply([change(table, 1, id=key, v="x") for key in (1, 7)])]
    table.failing = True
    results.append(table.apply([table.delete({"id": 7})]))
    table.failing = False
    assert table.rows() == [(1, "x", "w")]
    results.append(table.apply([change(table, 1, id=8, v="x")]))
    assert [one.problem and one.problem.code for one in results] == ["TGT042", None, "TGT031"]
    assert [one.outcome for one in results] == [Outcome.FAILING, Outcome.DONE, Outcome.BLOCKED]


def test_a_bad_record_is_released_by_a_row_that_was_fetched_after_it(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2, on_bad_record=OnBadRecord.QUARANTINE)
    bad = [unreadable(table.update(row(key, "?")), "v") for key in (1, 2)]
    source.away = True
    staged = batch(table, [*bad, gap(table, 1), gap(table, 2), change(table, 9, id=1, w="x")])
    assert staged.outcome is Outcome.FAILING
    assert waiting(table) == {"quarantined": 2, "dirty": 2, "parked": 1}
    source.away, source.rows = False, {1: (row(1, "fetched"), at(5)), 2: (row(2, "fetched"), at(5))}
    assert batch(table).outcome is Outcome.DONE
    assert table.rows() == [(1, "fetched", "x"), (2, "fetched", "w")] and waiting(table) == {"fetched": 2}
    behind = unreadable(table.update(row(1, "?")), "v")
    batch(table, [behind])
    assert waiting(table) == {"quarantined": 1, "fetched": 2}
    decide(table, behind, DecisionKind.REPLAY, v="read")
    batch(table)
    assert table.rows()[0] == (1, "read", "w")


def test_a_fetched_row_that_the_target_cannot_hold_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    schema = TableSchema("public.t", (Column("id", INT, False), Column("v", INT), Column("w", TEXT)), ("id",))
    source = RowSource()
    table = ScriptedTable(small_session(spark), tmp_path, schema, source=source)
    table.copy([{"id": 1, "v": 1, "w": "w"}])
    source.rows[1] = {"id": 1, "v": "much", "w": "w"}, at(1)
    staged = batch(table, [gap(table, 1)])
    assert staged.outcome is Outcome.FAILING and staged.problem and staged.problem.code == "TGT039"
    assert "column v" in staged.problem.found and "much" not in str(staged.problem)
    assert waiting(table) == {"dirty": 1}
    source.rows[1] = {"id": 1, "v": 2, "w": "w"}, at(1)
    batch(table)
    assert table.rows() == [(1, 2, "w")]


def test_a_source_that_cannot_fetch_rows_stops_the_table(spark: SparkSession, tmp_path: Path) -> None:
    table = ScriptedTable(small_session(spark), tmp_path, SCHEMA)
    table.copy([row(1, "a")])
    table.source = object()  # type: ignore[assignment]
    staged = batch(table, [gap(table, 1)])
    assert staged.outcome is Outcome.BLOCKED and staged.problem and staged.problem.code == "TGT038"
    assert "airflow cdc resync hand --table public.t" in staged.problem.do and table.rows() == [(1, "a", "w")]


def test_a_repair_keeps_fetched_rows(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1, 2)
    source.rows[1] = row(1, "fetched"), at(5)
    batch(table, [change(table, 1, id=1, v="b"), gap(table, 1), table.update(row(2, "b"))])
    job, _ = table.staged(repair=(1, 1))
    table.merged(job)
    assert table.rows() == [(1, "fetched", "w"), (2, "b", "w")]


def test_one_of_two_attempts_that_fetched_counts(spark: SparkSession, tmp_path: Path) -> None:
    table, source = copied_table(spark, tmp_path, 1)
    source.rows[1] = row(1, "first"), at(5)
    table.land([gap(table, 1), change(table, 5, id=1, w="held")])
    job, _ = table.staged()
    source.rows[1] = row(1, "second"), at(6)
    assert batch(table).outcome is Outcome.DONE
    assert table.rows() == [(1, "second", "w")] and waiting(table) == {"fetched": 1}
    assert table.merged(job).outcome is Outcome.FENCED


@pytest.mark.parametrize("history", [History.LOG, History.SCD2], ids=str)
def test_a_history_has_the_changes_around_a_row_that_is_fetched(
    spark: SparkSession, tmp_path: Path, history: History
) -> None:
    """Also in a run that searches the rows of partial changes, because the one before failed."""
    table, source = copied_table(spark, tmp_path, 1, history=history)
    source.rows[1] = row(1, "b", "fetched"), at(10)
    before, behind = change(table, 1, id=1, v="b"), [gap(table, 1, 2), change(table, 4, id=1, w="later")]
    source.rows, rows = {}, source.rows
    assert batch(table, [before, *behind]).outcome is Outcome.FAILING
    source.rows, table.failing = rows, True
    assert batch(table, [change(table, 5, id=1, w="later")]).outcome is Outcome.DONE
    table.failing = False
    batch(table, [change(table, 6, id=1, w="fetched")])
    if history is History.LOG:
        found = sorted(table.rows("_cdc_sequence", "_cdc_operation"), key=lambda one: one[3])
        assert [(one[4], *one[1:3]) for one in found] == [
            *(("read", "a", "w"), ("update", "b", None), ("read", "b", "fetched")),
            *(("update", None, "later"), ("update", None, "later"), ("update", None, "fetched")),
        ]
    else:
        found = sorted(table.rows("_cdc_sequence", "_cdc_is_current"), key=lambda one: one[3])
        assert [(*one[1:3], bool(one[4])) for one in found] == [
            *(("a", "w", False), ("b", "w", False), ("b", "fetched", False), ("b", "later", False)),
            ("b", "fetched", True),
        ]
