"""Several source tables in one target table: whatever happens to the rows of one, those of the others stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Blocked, ForeignTarget
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.loader.shard_checks import holds_shards
from airflow_cdc_provider.targets.target import ReleasesTables, TargetState, TargetTables
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import KITS, TargetKit
from tests.spark.contract.shards import ID, Shard, two

pytestmark = pytest.mark.jvm


@pytest.fixture(params=[name for name in sorted(KITS) if holds_shards(name.removesuffix(" in Spark").split(" ")[0])])
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


COPIED = [(1, "x"), (2, "y")]


def test_changes_and_copies_of_one_source_table_leave_the_rows_of_the_others(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path)
    assert (a.own(), b.own()) == (COPIED, COPIED)
    assert a.apply([a.update(a.row(1, "X")), a.delete(a.row(2, "y")), a.insert(a.row(3, "z"))]).outcome is Outcome.DONE
    assert (a.own(), b.own()) == ([(1, "X"), (3, "z")], COPIED)
    assert b.apply([b.delete(b.row(1, "x"))]).outcome is Outcome.DONE
    assert a.apply([a.truncate(), a.insert(a.row(4, "q"))]).outcome is Outcome.DONE
    assert (a.own(), b.own()) == ([(4, "q")], [(2, "y")])
    before = control(b)
    fence(a, TableState.RESYNCING)
    a.copy([a.row(5, "r")])
    assert (a.own(), b.own()) == ([(5, "r")], [(2, "y")])
    assert control(b) == before
    assert b.apply([b.insert(b.row(5, "s"))]).outcome is Outcome.DONE
    assert (a.own(), b.own()) == ([(5, "r")], [(2, "y"), (5, "s")])
    assert (a.row_count(), b.row_count()) == (1, 2)


@pytest.mark.nightly
def test_a_truncate_with_soft_deletes_marks_the_rows_of_one(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path, on_delete=OnDelete.SOFT)
    assert a.apply([a.truncate(), a.insert(a.row(2, "Y"))]).outcome is Outcome.DONE
    assert a.own("_cdc_deleted") == [(1, "x", True), (2, "Y", False)]
    assert b.own("_cdc_deleted") == [(1, "x", False), (2, "y", False)]


def test_commits_of_two_source_tables_at_once_both_succeed(
    kit: TargetKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge, a fence and a copy of the other one come first."""
    a, b = two(kit, tmp_path)
    fenced = b.target_state()
    for change in (
        lambda: b.apply([b.update(b.row(1, "B"))]),
        lambda: fence(b, TableState.RESYNCING),
        lambda: b.copy([b.row(7, "c")]),
    ):
        number = a.window
        kit.meanwhile(monkeypatch, change)
        assert a.apply([a.update(a.row(1, f"A{number}")), a.insert(a.row(10 + number, "n"))]).outcome is Outcome.DONE
        monkeypatch.undo()
    assert a.own() == [(1, "A2"), (10, "n"), (11, "n"), (12, "n"), (2, "y")]
    assert b.own() == [(7, "c")]
    assert control(b).fence > (fenced.control.fence if fenced.control else 0)


@pytest.mark.nightly
def test_a_fence_of_one_is_not_stopped_by_a_commit_of_another(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path)
    before = a.target_state()
    assert before.control is not None
    b.apply([b.update(b.row(1, "B"))])
    committed = a.job_tables().fence("t", before, before.control.fenced())
    assert control(a) == committed and control(b).window == 1
    stale = replace(before.control.fenced(), nonce="stale")
    with pytest.raises(Exception, match=r"TGT0[23]0"):
        a.job_tables().fence("t", before, stale)


@pytest.mark.nightly
@pytest.mark.parametrize("reply", [True, False], ids=["reply", "request"])
def test_a_lost_commit_is_applied_once(kit: TargetKit, tmp_path: Path, reply: bool) -> None:
    a, b = two(kit, tmp_path)
    a.land([a.insert(a.row(3, "z")), a.delete(a.row(1, "x"))])
    staged, _ = a.staged()
    with kit.lose(reply):
        result = a.merged(staged)
    if result.outcome is not Outcome.DONE:
        staged, result = a.staged()
        result = a.merged(staged) if result.outcome is Outcome.DONE else result
    assert (a.own(), b.own()) == ([(2, "y"), (3, "z")], COPIED)
    assert control(a).window == 1 and control(b).window == 0


@pytest.mark.nightly
def test_a_column_of_one_is_null_in_the_rows_of_the_others_until_they_have_it(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path)
    new = Column("n", INT)
    for table in (a, b):
        wider = replace(table.schema, columns=(*table.schema.columns, new))
        records = [table.alter(wider), table.update({**table.row(1, "x"), "n": 7})]
        assert table.apply(records).outcome is Outcome.DONE
        other = b if table is a else a
        assert (
            other.apply([other.update(other.row(2, "Y"), complete=other.schema is not wider)]).outcome is Outcome.DONE
        )
        assert (1, "x", 7) in table.own()
    assert sorted(kit.rows("shard", "id", "v", "n"), key=str) == [
        ("a", 1, "x", 7),
        ("a", 2, "Y", None),
        ("b", 1, "x", 7),
        ("b", 2, "Y", None),
    ]
    columns = [Column("n", LogicalType(Kind.INT64)) if one is new else one for one in a.schema.columns]
    stopped = a.apply([a.alter(replace(a.schema, columns=tuple(columns))), a.update({**a.row(1, "x"), "n": 9})])
    assert stopped.problem is not None and "t has rows of other source tables" in stopped.problem.found
    fence(b, TableState.RESYNCING)
    b.copy([{**b.row(1, "x"), "n": 8}])
    assert (1, "x", 7) in a.own() and b.own() == [(1, "x", 8)]


@pytest.mark.parametrize("kind", [LogicalType(Kind.DECIMAL, 10, 2), LogicalType(Kind.TIMESTAMP)], ids=str)
def test_a_new_column_with_another_type_than_that_of_the_others_is_refused(
    kit: TargetKit, tmp_path: Path, kind: LogicalType
) -> None:
    a, b = two(kit, tmp_path)
    new, other = Column("n", INT if kind.kind is Kind.DECIMAL else LogicalType(Kind.DATE)), Column("n", kind)
    value = {Kind.DECIMAL: (7, "7.55"), Kind.TIMESTAMP: ("2026-01-02", "2026-01-02T03:04:05")}[kind.kind]
    staged = []
    for table, column, given in ((a, new, value[0]), (b, other, value[1])):  # both before the first merge
        wider = replace(table.schema, columns=(*table.schema.columns, column))
        table.land([table.alter(wider), table.update({**table.row(1, "X"), "n": given})])
        staged.append(table.staged()[0])
    assert a.merged(staged[0]).outcome is Outcome.DONE
    before = control(b)
    refused = b.merged(staged[1])
    assert refused.outcome is Outcome.BLOCKED and refused.problem is not None and refused.problem.code == "TGT090"
    assert kit.rows("shard", "v") and (control(b).window, control(b).schema) == (before.window, before.schema)
    assert sorted(kit.rows("shard", "id", "v")) == [("a", 1, "X"), ("a", 2, "y"), ("b", 1, "x"), ("b", 2, "y")]


@pytest.mark.nightly
def test_a_copy_that_does_not_fit_beside_the_others_is_refused(kit: TargetKit, tmp_path: Path) -> None:
    a, _ = two(kit, tmp_path)
    other = Shard(kit, tmp_path, "c", Column("v", INT))
    with pytest.raises(Blocked, match=r"TGT090.*v is text and int32|TGT090") as error:
        other.copy([other.row(1, 5)])
    assert {"v", "c"} <= set(str(error.value).replace(",", " ").split())
    assert a.own() == COPIED
    alone = KitTable(kit, tmp_path / "alone", TableSchema("d", (ID, Column("v", TEXT)), ("id",)))
    with pytest.raises(ForeignTarget, match="TGT012"):
        alone.copy([{"id": 1, "v": "d"}])
    late = Shard(kit, tmp_path, "e", Column("v", TEXT))
    assert not late.target_state().exists
    late.copy([late.row(1, "e")])
    assert (a.own(), late.own()) == (COPIED, [(1, "e")])


def test_a_copy_replaces_no_rows_of_a_table_that_may_be_shared(
    kit: TargetKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table was restored to a version that the history does not name, while the copy was read."""
    a, b = two(kit, tmp_path)
    fence(a, TableState.RESYNCING)
    tables = type(a.writer().tables)
    known = tables.state

    def unknown(self: TargetTables, table: str, target_table: str) -> TargetState:
        state = known(self, table, target_table)
        return replace(state, control=None, restored=True, shared=False)

    with monkeypatch.context() as patch:
        patch.setattr(tables, "state", unknown)
        with pytest.raises(ForeignTarget, match="TGT012"):
            a.copy([a.row(5, "r")])
    assert (a.own(), b.own()) == (COPIED, COPIED)


@pytest.mark.nightly
def test_a_table_of_others_is_not_shared(kit: TargetKit, tmp_path: Path) -> None:
    kit.create()
    a = Shard(kit, tmp_path, "a", Column("v", TEXT))
    assert a.target_state().exists
    with pytest.raises(ForeignTarget, match="TGT012"):
        a.copy([a.row(1, "x")])


def test_a_cut_contains_each_source_table_and_leaving_drops_the_table_once(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path)
    tables, states = a.job_tables(), [(table.name, table.target_state()) for table in (a, b)]
    cut = [CutTable("t", 0, state.identity, state.version, name, state.shared) for name, state in states]
    tables.publish_cut(Cut("hand", 0, "2026-01-01T00:00:00Z", tuple(cut)))
    published = kit.cut("id")
    assert published is not None and (published[0], sorted(published[1])) == (0, [(1,), (1,), (2,), (2,)])
    b.apply([b.insert(b.row(3, "z"))])
    later = kit.cut("id")
    assert (later is not None and len(later[1]) == 4) if kit.keeps_cuts else later is None
    assert isinstance(tables, ReleasesTables)
    for name, state in states:
        tables.drop("t", state.identity)
        tables.release(name, "t")
    assert not a.target_state().exists and not b.target_state().exists
    again = Shard(kit, tmp_path / "again", "a", Column("v", TEXT))
    again.copy([again.row(1, "new")])
    assert again.rows() == [("a", 1, "new")]
