"""Copies that keep every version of a row, or every change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.transports.messages.filtering import LEFT_OUT, MAYBE_LEFT_OUT
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns, Metadata
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, OnBadRecord, OnDelete, Source
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.sparksql.types import from_text
from spark_jobs.copies.copying import build_control_record, table_status
from spark_jobs.histories.copy_again import HistoryCopy
from spark_jobs.histories.current_rows import current_rows
from spark_jobs.runtime.job import TableWork
from tests.spark.bad_records import decide, unreadable
from tests.spark.contract.fold_cases import INT, KEYED, TEXT, Changes, KeyedChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.row_source import RowSource
from tests.spark.scripted_table import COPIED_AT, Row

pytestmark = pytest.mark.jvm

VERSION = ("_cdc_sequence", "_cdc_valid_from", "_cdc_valid_to", "_cdc_is_current")
CHANGE = ("_cdc_sequence", "_cdc_operation", "_cdc_commit_time", "_cdc_missing_columns")
COPIED = "00000000"


class HistoryTable(KitTable):
    """A change is committed as many seconds after the copy as its order key says."""

    def __init__(self, kit: TargetKit, folder: Path, history: History, on_delete: OnDelete = OnDelete.HARD) -> None:
        super().__init__(kit, folder, KEYED, on_delete, history=history)
        self.changes = KeyedChanges(self, 0)

    def timed(self, changes: Changes) -> list[ChangeRecord]:
        flat = [one for item in changes for one in (item if isinstance(item, list) else [item])]
        return [replace(one, commit_ts=COPIED_AT + timedelta(seconds=int(one.order_key, 16))) for one in flat]

    def change(self, *changes: ChangeRecord | list[ChangeRecord]) -> None:
        result = self.apply(self.timed(list(changes)))
        assert result.outcome is Outcome.DONE, result.problem

    def versions(self) -> list[tuple[Any, ...]]:
        """Values, sequence, first and last second, whether it is current."""
        return sorted(
            (
                (*row[:-4], int(row[-4].partition("!")[0], 16), seconds(row[-3]), seconds(row[-2]), bool(row[-1]))
                for row in self.rows(*VERSION)
            ),
            key=lambda version: (version[0], version[-4], version[-3]),
        )

    def logged(self) -> list[tuple[Any, ...]]:
        """Sequence, operation, values, missing columns."""
        found = self.rows(*CHANGE)
        return sorted(
            ((int(row[-4].partition("!")[0], 16), row[-3], *row[:-4], row[-1]) for row in found),
            key=lambda change: (change[0], str(change[2])),
        )

    def copy_again(self, rows: Sequence[Row], floor: str = "", unlogged: tuple[str, ...] = ()) -> TableResult:
        """A resync with these rows of the source, at the end of the stream if no ``floor`` is given. ``unlogged``:
        columns whose changes are not in the stream."""
        names = self.schema.names
        texts = [tuple(None if row[name] is None else str(row[name]) for name in names) for row in rows]
        given = self.spark.createDataFrame(texts, ", ".join(f"`{name}` STRING" for name in names))
        frame = given.selectExpr(
            *(f"{from_text(f'`{one.name}`', one.type)} AS `{one.name}`" for one in self.schema.columns)
        )
        self.order += 1
        job = self.job(StepKind.RESYNC, (self.task(),))
        vars(job.resources).update(connector=RowSource())
        work = TableWork(self.task(), lambda: self.spark)
        named, current = table_status(job, self.task())
        assert current.control is not None
        copy = Copy(floor or f"{self.order:08x}", {}, self.schema, SplitRead((), 0), len(rows), unlogged=unlogged)
        state = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")
        record = build_control_record(job, self.task(), named, current, copy, state, None)
        began = COPIED_AT + timedelta(seconds=self.order)
        copied = HistoryCopy(job, work, copy, current.control, record, began)
        found = current_rows(self.rule.history, self.read_at(current.version), self.schema.key)
        differences = copied.differences(found, frame).localCheckpoint()
        return copied.commit(differences, copied.missing(differences, found))


def seconds(at: datetime | None) -> float | None:
    if at is None:
        return None
    utc = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    return (utc - COPIED_AT).total_seconds()


def every_second(*values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Versions by their values, first and last second: the sequence of a change is its second."""
    return [
        (*row[:3], row[3], float(row[3]), None if row[4] is None else float(row[4]), row[4] is None) for row in values
    ]  # type: ignore[index]


def test_each_change_ends_the_version_of_its_row_and_begins_one(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes = table.changes
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w"), changes.row(3, "c", "w"), changes.row(9, "z", "w")])
    table.change(
        *(changes.update(1, "A"), changes.delete(2), changes.insert(4, "d", None), changes.update(1, "AA", "W")),
        *(changes.move(3, 5, "C"), changes.update(9, "z")),
    )
    assert table.versions() == every_second(
        *((1, "a", "w", 0, 1), (1, "A", "w", 1, 4), (1, "AA", "W", 4, None), (2, "b", "w", 0, 2)),
        *((3, "c", "w", 0, 5), (4, "d", None, 3, None), (5, "C", "w", 6, None), (9, "z", "w", 0, None)),
    )
    table.change(changes.insert(2, "B", "w"), table.truncate(), changes.insert(1, "new", "w"), changes.delete(9))
    assert table.versions() == every_second(
        *((1, "a", "w", 0, 1), (1, "A", "w", 1, 4), (1, "AA", "W", 4, 9), (1, "new", "w", 10, None)),
        *((2, "b", "w", 0, 2), (2, "B", "w", 8, 9), (3, "c", "w", 0, 5), (4, "d", None, 3, 9)),
        *((5, "C", "w", 6, 9), (9, "z", "w", 0, 9)),
    )
    assert table.row_count() in (None, 10)
    _, again = table.staged()
    assert again.outcome is Outcome.UNCHANGED


def test_of_several_truncates_the_first_after_a_version_ends_it(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes = table.changes
    table.copy([changes.row(1, "a", "w")])
    late = table.truncate()
    table.change(changes.insert(2, "b", "w"))
    table.change(late, table.truncate(), table.truncate())
    assert table.versions() == every_second((1, "a", "w", 0, 1), (2, "b", "w", 2, 3))


@pytest.mark.nightly
def test_another_commit_time_or_operation_alone_makes_no_version(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes, added = table.changes, (AddedColumn("w", metadata=Metadata.OPERATION),)
    table.rule = replace(table.rule, columns=Columns(add=added))
    table.copy([changes.row(1, "a", "read")])
    table.change(changes.update(1, "a", "update"), changes.update(1, "A", "update"), changes.update(1, "A", "upsert"))
    assert table.versions() == every_second((1, "a", "read", 0, 2), (1, "A", "update", 2, None))


@pytest.mark.parametrize("history", [History.SCD2, pytest.param(History.LOG, marks=pytest.mark.nightly)])
def test_later_changes_of_a_row_wait_for_its_bad_record_until_an_operator_decides(
    kit: TargetKit, tmp_path: Path, history: History
) -> None:
    table = HistoryTable(kit, tmp_path, history)
    changes = table.changes
    table.rule = replace(table.rule, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([changes.row(1, "a", "w"), changes.row(2, "a", "w")])
    corrected, dropped = changes.update(1, "?", "w"), changes.update(2, "?", "w")
    bad = [unreadable(one, "v") for one in table.timed([corrected, dropped])]
    table.change(*bad, changes.update(1, "c", "w"), changes.update(2, "c", "w"), changes.insert(3, "d", "w"))
    table.change(changes.delete(1))
    assert [row[:2] for row in table.rows() if row[0] != 3] == [(1, "a"), (2, "a")]
    decide(table, bad[0], DecisionKind.REPLAY, v="b")
    decide(table, bad[1], DecisionKind.DISCARD)
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE and table.merged(job).outcome is Outcome.DONE
    if history is History.SCD2:
        assert table.versions() == every_second(
            *((1, "a", "w", 0, 1), (1, "b", "w", 1, 3), (1, "c", "w", 3, 6)),
            *((2, "a", "w", 0, 4), (2, "c", "w", 4, None), (3, "d", "w", 5, None)),
        )
    else:
        assert [(order, key, value) for order, _, key, value, *_ in table.logged() if order] == [
            *((1, 1, "b"), (3, 1, "c"), (4, 2, "c"), (5, 3, "d"), (6, 1, None))
        ]


def test_a_row_whose_changes_wait_is_ended_by_a_truncate_of_the_meantime_when_they_are_decided(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes = table.changes
    table.rule = replace(table.rule, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([changes.row(1, "a", "w"), changes.row(2, "a", "w"), changes.row(4, "z", "w")])
    first = changes.update(2, "A", "w")
    bad = [unreadable(one, "v") for one in table.timed([changes.update(1, "?", "w"), changes.update(2, "?", "w")])]
    table.change(first, *bad, changes.update(1, "c", "w"), table.truncate())
    other = every_second((2, "a", "w", 0, 1), (4, "z", "w", 0, 5))
    waiting = every_second((1, "a", "w", 0, None), (2, "A", "w", 1, None))
    assert table.versions() == [waiting[0], other[0], waiting[1], other[1]]
    decide(table, bad[0], DecisionKind.REPLAY, v="b")
    decide(table, bad[1], DecisionKind.DISCARD)
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE and table.merged(job).outcome is Outcome.DONE
    assert table.versions() == every_second(
        *((1, "a", "w", 0, 2), (1, "b", "w", 2, 4), (1, "c", "w", 4, 5)),
        *((2, "a", "w", 0, 1), (2, "A", "w", 1, 5), (4, "z", "w", 0, 5)),
    )


@pytest.mark.nightly
def test_a_row_that_moves_while_its_bad_record_waits_waits_under_its_new_key_too(
    kit: TargetKit, tmp_path: Path
) -> None:
    """A later complete change of the new key does not release it: the version before it would be lost."""
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes = table.changes
    table.rule = replace(table.rule, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([changes.row(1, "a", "w")])
    (bad,) = (unreadable(one, "v") for one in table.timed([changes.update(1, "?", "w")]))
    table.change(bad, changes.move(1, 2, "c"), changes.update(2, "d", "W"))
    assert table.rows() == [(1, "a", "w")]
    decide(table, bad, DecisionKind.REPLAY, v="b")
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE and table.merged(job).outcome is Outcome.DONE
    assert table.versions() == every_second(
        *((1, "a", "w", 0, 1), (1, "b", "w", 1, 2), (2, "c", "w", 3, 4), (2, "d", "W", 4, None))
    )


@pytest.mark.nightly
@pytest.mark.parametrize("history", [History.SCD2, pytest.param(History.LOG, marks=pytest.mark.nightly)])
def test_a_new_column_with_the_name_of_a_former_one_stops_before_old_values_are_lost(
    kit: TargetKit, tmp_path: Path, history: History
) -> None:
    table = HistoryTable(kit, tmp_path, history)
    changes, narrow = table.changes, replace(KEYED, columns=KEYED.columns[:2])
    table.copy([changes.row(1, "a", "w")])
    table.change(table.alter(narrow), changes.insert(2, "b"))
    stopped = table.apply(table.timed([table.alter(KEYED), changes.insert(3, "c", "new")]))
    assert stopped.outcome is Outcome.BLOCKED and stopped.problem is not None
    assert (stopped.problem.code, stopped.problem.found) == ("SCH005", "w")
    assert sorted((row[0], row[2]) for row in table.rows()) == [(1, "w"), (2, None)]


@pytest.mark.nightly
def test_a_copy_over_versions_has_the_types_of_former_columns(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes = table.changes
    table.copy([changes.row(1, "a", "w")])
    table.change(table.alter(replace(KEYED, columns=KEYED.columns[:2])), changes.insert(2, "b"))
    for columns in (KEYED.columns[:2], KEYED.columns[:1]):
        table.schema = replace(KEYED, columns=columns)
        assert table.copy_again([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]).outcome is Outcome.DONE
        control = table.target_state().control
        assert control is not None
        assert control.former == {name: "text" for name in KEYED.names if name not in table.schema.names}


@pytest.mark.nightly
def test_a_log_has_every_change_with_the_values_that_the_source_sent(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.LOG)
    changes = table.changes
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w")])
    first, second, third = changes.update(1, "A"), changes.delete(2), changes.insert(3, "c", None)
    table.change(first, second, third, third, changes.move(1, 4, "M", "w"))
    found = [
        *((0, "read", 1, "a", "w", None), (0, "read", 2, "b", "w", None), (1, "update", 1, "A", None, '["w"]')),
        *((2, "delete", 2, None, None, '["v","w"]'), (3, "insert", 3, "c", None, None)),
        *((4, "delete", 1, None, None, '["v","w"]'), (5, "insert", 4, "M", "w", None)),
    ]
    assert table.logged() == found
    table.change(table.truncate(), changes.insert(2, "new", "w"))
    assert table.logged() == [*found, (6, "truncate", None, None, None, None), (7, "insert", 2, "new", "w", None)]


def test_a_log_has_no_deletes_of_rows_that_its_filter_left_out(kit: TargetKit, tmp_path: Path) -> None:
    """The events do not show which rows the log had before them."""
    table = HistoryTable(kit, tmp_path, History.LOG)
    changes = table.changes
    table.definition = replace(table.definition, source=Source("kafka", "", options={"format": "debezium"}))
    table.rule = replace(table.rule, where=(Condition("v", Comparison.EQUAL, "a"),))
    table.copy([changes.row(1, "a", "w"), changes.row(2, "a", "w"), changes.row(3, "a", "w")])

    def leaves(key: int) -> ChangeRecord:
        return replace(changes.delete(key), warnings=(MAYBE_LEFT_OUT,))

    table.change(leaves(1), leaves(1), leaves(7), changes.insert(8, "a", "w"), leaves(8))
    table.change(leaves(1), leaves(8), table.truncate(), leaves(2), changes.insert(3, "a", "w"))
    table.change(leaves(2), leaves(3), replace(changes.delete(3), warnings=(LEFT_OUT,)))
    found = [(number, op, key) for number, op, key, *_ in table.logged() if number]
    assert found == [
        *((1, "delete", 1), (4, "insert", 8), (5, "delete", 8)),
        *((8, "truncate", None), (10, "insert", 3), (12, "delete", 3)),
    ]


@pytest.mark.nightly
def test_a_copy_over_versions_ends_and_begins_those_that_differ(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    changes = table.changes
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w")])
    table.change(changes.update(1, "A"))
    rows = [changes.row(1, "A", "w"), changes.row(3, "c", None)]
    assert table.copy_again(rows).outcome is Outcome.DONE
    found = every_second((1, "a", "w", 0, 1), (1, "A", "w", 1, None), (2, "b", "w", 0, 2), (3, "c", None, 2, None))
    assert table.versions() == found
    assert table.copy_again(rows).rows == 0 and table.versions() == found
    table.change(changes.insert(2, "B", "w"))
    assert table.versions() == [*found[:3], *every_second((2, "B", "w", 4, None)), found[3]]


def test_a_copy_over_versions_brings_values_that_the_stream_does_not_have(kit: TargetKit, tmp_path: Path) -> None:
    """As a formula of Salesforce, which is NULL in the row of an event."""
    table = HistoryTable(kit, tmp_path, History.SCD2)
    table.copy([table.changes.row(1, "a", "w")])
    table.change(table.changes.update(1, "b", None))
    assert table.copy_again([table.changes.row(1, "b", "formula")], unlogged=("w",)).outcome is Outcome.DONE
    assert table.versions() == every_second((1, "a", "w", 0, 1), (1, "b", None, 1, 2), (1, "b", "formula", 2, None))


def test_a_copy_over_versions_begins_after_those_that_have_ended(kit: TargetKit, tmp_path: Path) -> None:
    """The clock of the worker may be behind that of the source."""
    table = HistoryTable(kit, tmp_path, History.SCD2)
    table.copy([table.changes.row(1, "a", "w")])
    late = replace(table.changes.delete(1), commit_ts=datetime(2126, 1, 1, tzinfo=UTC))
    assert table.apply([late]).outcome is Outcome.DONE
    before = table.target_state().control
    assert table.copy_again([table.changes.row(1, "b", "w")]).outcome is Outcome.DONE
    (_, ended), (begins, _) = ((version[-3], version[-2]) for version in table.versions())
    assert ended == begins
    after = table.target_state().control
    assert before is not None and after is not None and after.versions_until == before.versions_until


@pytest.mark.nightly
def test_a_copy_over_a_log_appends_what_differs(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.LOG)
    changes = table.changes
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w")])
    table.change(changes.update(1, "A", "w"))
    rows = [changes.row(1, "A", "w"), changes.row(3, "c", None)]
    assert table.copy_again(rows).outcome is Outcome.DONE
    found = [
        *((0, "read", 1, "a", "w", None), (0, "read", 2, "b", "w", None), (1, "update", 1, "A", "w", None)),
        *((2, "delete", 2, "b", "w", None), (2, "read", 3, "c", None, None)),
    ]
    assert table.logged() == found
    assert table.copy_again(rows).rows == 0 and table.logged() == found


@pytest.mark.nightly
def test_versions_follow_added_columns_and_stay_where_deletes_are_ignored(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2, OnDelete.IGNORE)
    changes = table.changes
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w")])
    table.change(changes.delete(1), table.truncate(), changes.update(2, "B"))
    assert table.versions() == every_second((1, "a", "w", 0, None), (2, "b", "w", 0, 3), (2, "B", "w", 3, None))
    more = Column("z", INT, initial="5")
    altered = table.alter(replace(table.schema, columns=(*table.schema.columns, more)))
    table.change(altered, table.update({"id": 2, "v": "B", "w": "w", "z": 6}))
    assert [(row[0], row[3], row[4]) for row in table.versions()] == [(1, 5, 0), (2, 5, 0), (2, 5, 3), (2, 6, 5)]


@pytest.mark.nightly
def test_a_history_does_not_continue_with_a_column_of_another_type(kit: TargetKit, tmp_path: Path) -> None:
    table = HistoryTable(kit, tmp_path, History.SCD2)
    table.copy([table.changes.row(1, "a", "w")])
    before = table.target_state()
    table.schema = TableSchema("public.t", (KEYED.columns[0], Column("v", INT), Column("w", TEXT)), ("id",))
    with pytest.raises(Blocked, match="CPY013"):
        table.copy_again([{"id": 1, "v": 1, "w": "w"}])
    assert table.target_state() == before


@pytest.mark.parametrize("history", [History.SCD2, pytest.param(History.LOG, marks=pytest.mark.nightly)])
def test_a_history_does_not_continue_with_a_copy_that_begins_before_its_changes(
    kit: TargetKit, tmp_path: Path, history: History
) -> None:
    """A feed's new snapshot: the copy is empty, and its floor is below all changes of the feed."""
    table = HistoryTable(kit, tmp_path, history)
    table.definition = replace(table.definition, source=Source("files", "none", options={"format": "debezium"}))
    table.copy([table.changes.row(1, "a", "w"), table.changes.row(2, "a", "w")])
    table.change(table.changes.update(1, "b", "w"))
    before = table.target_state()
    with pytest.raises(Blocked, match="CPY026"):
        table.copy_again([], floor=COPIED)
    assert table.target_state() == before
