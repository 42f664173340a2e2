"""Bad records of keyed tables: quarantined with all later records of their keys, retried, or discarded."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.log.change_log import quarantine_folder, quarantine_path
from airflow_cdc_provider.core.log.quarantine import BadRecord, record_id
from airflow_cdc_provider.core.spec.definition import OnBadRecord, OnDelete
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.copies.key_audit import carry_of_present_rows, without_waiting
from spark_jobs.runtime.job import TableWork
from tests.spark.bad_records import RAW, decide, unreadable
from tests.spark.contract.control_records import control, require_accounted
from tests.spark.contract.sessions import small_session
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

REPLAY, DISCARD = DecisionKind.REPLAY, DecisionKind.DISCARD
INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, False), Column("v", TEXT), Column("w", TEXT)), ("id",))


def row(key: int, v: str | None, w: str | None = "w") -> Row:
    return {"id": key, "v": v, "w": w}


def copied_table(spark: SparkSession, folder: Path, *keys: int, **more: Any) -> ScriptedTable:
    table = ScriptedTable(small_session(spark), folder, SCHEMA, **{"on_bad_record": OnBadRecord.QUARANTINE, **more})
    table.copy([row(key, "a") for key in keys])
    return table


def waiting(table: ScriptedTable) -> tuple[int, int]:
    """The numbers of records in quarantine and of those parked behind them. No record is lost."""
    carry = control(table).carry
    require_accounted(control(table))
    assert carry.dirty == 0 and carry.quarantined == len(table.log.quarantined_records(carry))
    return carry.quarantined, carry.parked


def release(table: ScriptedTable) -> TableResult:
    """A batch without windows: it contains decisions alone."""
    fence = control(table).fence
    job, staged = table.staged()
    if staged.outcome is not Outcome.DONE:
        return staged
    merged = table.merged(job)
    assert merged.outcome is Outcome.DONE and control(table).fence > fence
    assert table.merged(job).outcome is Outcome.FENCED, "once"
    return merged


def test_a_bad_record_and_its_key_wait_and_all_other_keys_continue(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_table(spark, tmp_path, 1, 2, 3, 4)
    bad = unreadable(table.update(row(1, "b")), "v")
    whole = [unreadable(table.update(row(2, "?"))), table.update(row(2, "c"))]
    gone = [unreadable(table.update(row(3, "?"))), table.delete({"id": 3})]
    behind = table.update({"id": 1, "w": "x"}, complete=False)
    table.apply([bad, bad, *whole, *gone, behind, table.update(row(4, "d"))])
    assert table.rows() == [(1, "a", "w"), (2, "c", "w"), (4, "d", "w")]
    assert waiting(table) == (1, 1)
    kept = quarantine_path(table.schema.table, record_id(bad))
    content = table.log.store.read(kept)
    stored = BadRecord.decode(content, kept)
    assert (stored.raw, stored.codec, stored.window, stored.reason) == (RAW, "tests", 1, "no telling")

    table.apply([table.update({"id": 1, "w": "y"}, complete=False), bad, table.insert(row(5, "e"))])
    assert table.rows() == [(1, "a", "w"), (2, "c", "w"), (4, "d", "w"), (5, "e", "w")]
    assert waiting(table) == (1, 2)
    (listed,) = table.log.quarantined_records(control(table).carry)
    assert (listed.id, listed.behind, listed.since) == (record_id(bad), 2, stored.first_seen)
    assert release(table).outcome is Outcome.UNCHANGED, "there is no decision"

    decide(table, bad, REPLAY)
    assert release(table).outcome is Outcome.UNCHANGED, "the replayed record is bad again"
    decide(table, bad, REPLAY, v="b")
    release(table)
    assert table.rows()[0] == (1, "b", "y") and waiting(table) == (0, 0)
    assert release(table).outcome is Outcome.UNCHANGED
    assert table.log.store.read(kept) == content


def test_a_value_that_does_not_fit_is_bad_after_another_bad_record_too(spark: SparkSession, tmp_path: Path) -> None:
    """No batch folds it while it waits; released as a good record, it would stop every later batch."""
    schema = TableSchema("public.t", (Column("id", INT, False), Column("n", INT), Column("v", TEXT)), ("id",))
    table = ScriptedTable(small_session(spark), tmp_path, schema, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([{"id": 1, "n": 1, "v": "a"}])
    bad = unreadable(table.update({"id": 1, "n": 2, "v": "b"}), "v")
    much = table.update({"id": 1, "n": "much"}, complete=False)
    last = table.update({"id": 1, "v": "c"}, complete=False)
    table.apply([bad, much, last])
    assert (table.rows(), waiting(table)) == ([(1, 1, "a")], (2, 1))

    decide(table, bad, REPLAY, v="b")
    release(table)
    assert (table.rows(), waiting(table)) == ([(1, 2, "b")], (1, 1))
    decide(table, much, REPLAY, n=3)
    release(table)
    assert (table.rows(), waiting(table)) == ([(1, 3, "c")], (0, 0))


def test_the_result_names_the_decisions_that_helped(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_table(spark, tmp_path, 1)
    bad = [unreadable(table.update(row(1, "b")), "v"), unreadable(table.insert(row(2, "b")), "v", "w")]
    discarded = unreadable(table.insert(row(3, "b")), "v")
    table.apply([*bad, discarded])
    decide(table, bad[0], DISCARD)
    decide(table, bad[0], REPLAY, v="c")
    decide(table, bad[1], REPLAY, v="c")
    decide(table, discarded, DISCARD)
    _, staged = table.staged()
    newest = {one.record: one.id for one in table.log.decisions()}
    assert staged.decided == {record_id(one): newest[record_id(one)] for one in (bad[0], discarded)}


def test_records_at_one_position_are_distinguished_by_their_keys(spark: SparkSession, tmp_path: Path) -> None:
    """All rows of a connector's own snapshot have one position in the source's log."""
    schema = TableSchema("public.t", (Column("id", INT, False), Column("n", INT), Column("v", TEXT)), ("id",))
    table = ScriptedTable(small_session(spark), tmp_path, schema, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([])
    met = [table.insert({"id": key, "n": "much" if key == 3 else key, "v": "a"}) for key in range(1, 6)]
    rows = [replace(one, op="read", order_key=met[0].order_key) for one in met]
    bad = [unreadable(rows[0], "v"), unreadable(rows[1], "v"), rows[2]]
    table.apply([*bad, *rows[3:]])
    assert (table.rows(), waiting(table)) == ([(4, 4, "a"), (5, 5, "a")], (3, 0))
    assert len(table.log.store.names(quarantine_folder(schema.table))) == 3, "each is kept as it arrived"

    decide(table, bad[1], REPLAY, v="b")
    decide(table, bad[2], REPLAY, n=3)
    release(table)
    assert (table.rows(), waiting(table)) == ([(2, 2, "b"), (3, 3, "a"), (4, 4, "a"), (5, 5, "a")], (1, 0))


@pytest.mark.nightly
def test_discarding_a_record_discards_the_records_that_depend_on_it(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_table(spark, tmp_path, 1, on_delete=OnDelete.SOFT)
    changed = unreadable(table.update(row(1, "b")), "v")
    born = unreadable(table.insert(row(2, "b")), "v")
    again = unreadable(table.insert(row(3, "b")), "v")
    behind = [table.update({"id": key, "w": "x"}, complete=False) for key in (1, 2, 3)]
    table.apply([changed, born, again, *behind])
    assert (table.rows(), waiting(table)) == ([(1, "a", "w")], (3, 3))
    decide(table, changed, REPLAY, v="b")
    for one in (born, again):
        decide(table, one, DISCARD)
    table.apply([table.insert(row(3, "c"))])
    assert table.rows("_cdc_deleted") == [(1, "b", "x", False), (3, "c", "w", False)]
    assert waiting(table) == (0, 0)
    assert control(table).accounting["discarded"] == 4, "two bad records, and two changes without their rows"

    table.spark.sql(f"UPDATE delta.`{table.definition.target.location}/t` SET v = 'damaged'")
    job, _ = table.staged(repair=(1, 2))
    assert table.merged(job).outcome is Outcome.DONE
    assert table.rows("_cdc_deleted") == [(1, "b", "x", False), (3, "c", "w", False)], "as was decided"


def test_rows_that_moved_without_all_columns_wait_together(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_table(spark, tmp_path, 1, 2, 3)
    bad = unreadable(table.update(row(1, "b", "b")), "v", "w")
    there, further = table.move({"id": 1}, {"id": 11, "w": "x"}, False), table.move({"id": 11}, {"id": 12}, False)
    came = table.move({"id": 2}, row(1, "whole"))
    lost = table.move({"id": 3}, row(13, "c"), False)
    lost[1] = unreadable(lost[1], "v")
    table.apply([bad, there, further, came, lost])
    assert table.rows() == [(1, "a", "w"), (3, "a", "w")], "the arrival at key 1 waits behind the departure from it"
    assert waiting(table) == (2, 6)
    decide(table, bad, REPLAY, v="b", w="b")
    decide(table, lost[1], REPLAY, v="c")
    release(table)
    assert table.rows() == [(1, "whole", "w"), (12, "b", "x"), (13, "c", "w")] and waiting(table) == (0, 0)


def test_a_crash_at_any_point_loses_and_duplicates_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_at(point: str) -> None:
        token = tmp_path / f"token-{uuid.uuid4().hex}"
        token.touch()
        monkeypatch.setenv(ARMED, f"{point}=raise:StagingUnavailable")
        monkeypatch.setenv(TOKEN, str(token))

    def died(result: TableResult) -> bool:
        return result.outcome is Outcome.FAILING and not list(tmp_path.glob("token-*"))

    table = copied_table(spark, tmp_path, 1, 2)
    bad = unreadable(table.update(row(1, "b")), "v")
    table.land([bad, table.update({"id": 1, "w": "x"}, complete=False), table.update(row(2, "c"))])
    die_at("quarantine.after_write")
    assert died(table.staged()[1])
    table.merged(table.staged()[0])
    assert (table.rows(), waiting(table)) == ([(1, "a", "w"), (2, "c", "w")], (1, 1))
    decide(table, bad, REPLAY, v="b")
    job, _ = table.staged()
    die_at("merge.before_commit")
    assert died(table.merged(job)) and table.rows() == [(1, "a", "w"), (2, "c", "w")]
    job, _ = table.staged()
    die_at("merge.after_commit")
    merged = table.merged(job)
    assert merged.outcome is Outcome.DONE, "the commit is read back"
    assert not list(tmp_path.glob("token-*")) and table.rows() == [(1, "b", "x"), (2, "c", "w")]
    assert table.merged(job).outcome is Outcome.FENCED and waiting(table) == (0, 0)
    assert table.staged()[1].outcome is Outcome.UNCHANGED


def test_in_a_wide_table_a_value_that_does_not_fit_is_found_as_fast(spark: SparkSession, tmp_path: Path) -> None:
    columns = [Column("id", INT, False), *(Column(f"c{number}", INT) for number in range(120))]
    table = ScriptedTable(small_session(spark), tmp_path, TableSchema("public.t", tuple(columns), ("id",)))
    table.copy([{column.name: 1 for column in columns}])
    table.land([table.update({**{column.name: 2 for column in columns}, "id": 1, "c119": "much"})])
    stopped = table.staged()[1]
    assert stopped.problem and stopped.problem.code == "QUA001" and "column c119" in stopped.problem.what


def test_a_bad_record_stops_the_table_before_its_window(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_table(spark, tmp_path, 1, on_bad_record=OnBadRecord.STOP)
    table.land([table.update(row(1, "b"))])
    bad = unreadable(table.update(row(1, "c")), "v")
    table.land([bad, table.insert(row(2, "a"))])
    job, stopped = table.staged()
    assert stopped.outcome is Outcome.BLOCKED and stopped.problem is not None
    assert (stopped.problem.code, stopped.window) == ("QUA001", 1)
    kept = quarantine_path(table.schema.table, record_id(bad))
    assert record_id(bad) in stopped.problem.what and kept in stopped.problem.data
    assert BadRecord.decode(table.log.store.read(kept), kept).raw == RAW
    table.merged(job)
    assert table.rows() == [(1, "b", "w")]
    assert table.staged()[1].outcome is Outcome.BLOCKED, "nothing before it is left to apply"
    decide(table, bad, REPLAY, v="c")
    table.apply()
    assert table.rows() == [(1, "c", "w"), (2, "a", "w")] and waiting(table) == (0, 0)


def test_too_many_bad_records_or_one_of_any_key_stop_the_table_too(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_table(spark, tmp_path, 1)
    anybodys = unreadable(table.update(row(1, "c")), key=False)
    result = table.apply([anybodys])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "QUA002"
    decide(table, anybodys, REPLAY, **row(1, "c"))
    table.apply()
    assert table.rows() == [(1, "c", "w")]
    many = [unreadable(table.insert(row(100 + n, "b")), "v") for n in range(101)]
    result = table.apply(many)
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "QUA003"
    assert len(table.log.store.names(f"quarantine/{table.schema.table}")) == 100 + 1, (
        "a hundred records, and the one before"
    )


def test_a_key_audit_drops_what_waits_for_a_row_that_is_gone_and_ends_no_version_whose_changes_wait(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = copied_table(spark, tmp_path, 1, 2)
    bad = [unreadable(table.update(row(key, "?")), "v") for key in (1, 2)]
    assert table.apply([*bad, *(table.update({"id": key, "w": "x"}, complete=False) for key in (1, 2))])
    assert waiting(table) == (2, 2)
    job, work = table.job(StepKind.RESYNC, (table.task(),)), TableWork(table.task(), lambda: table.spark)
    keys, source = replace(SCHEMA, columns=SCHEMA.columns[:1]), table.spark.createDataFrame([(2,)], "id int")
    carry = carry_of_present_rows(job, work, control(table), source, keys, "audit")
    assert (carry.quarantined, carry.parked) == (1, 1)
    assert [one.id for one in table.log.quarantined_records(carry)] == [record_id(bad[1])]
    deleted = table.spark.createDataFrame([(1,), (9,)], "id int")
    assert without_waiting(job, work, control(table), deleted, keys).collect() == [(9,)]
