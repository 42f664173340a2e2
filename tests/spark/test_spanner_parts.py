"""Batches that exceed one transaction in Spanner: a driver dies between two transactions, another one continues."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.sandbox.spanner import EmbeddedSpanner, limits
from airflow_cdc_provider.sandbox.spanner.faults import Fault
from airflow_cdc_provider.targets.spanner import large_merge, merge
from airflow_cdc_provider.targets.spanner.names import PARTS
from airflow_cdc_provider.targets.spanner.sizes import COMMIT_BYTES
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import INT, KEYED, KEYLESS, TEXT, KeyedChanges, KeylessChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.spanner_kit import SpannerKit, spanner_kit

pytestmark = pytest.mark.jvm

FEW = 44
"""Mutations of a transaction: 24 for rows."""


@pytest.fixture
def kit(spark: SparkSession, spanner_server: EmbeddedSpanner, tmp_path: Path) -> Iterator[SpannerKit]:
    with spanner_kit(spark, tmp_path, lambda _: spanner_server, max_mutations=FEW) as kit:
        yield kit


class Died(BaseException):
    """The process ends without any cleanup that an exception of the product would start."""


@contextmanager
def dies(point: str, passages: int = 1) -> Iterator[None]:
    passed: list[str] = []

    def failpoint(name: str) -> None:
        passed.append(name)
        if passed.count(point) == passages:
            raise Died

    with pytest.MonkeyPatch.context() as patch:
        for module in (merge, large_merge):
            patch.setattr(module, "failpoint", failpoint)
        with pytest.raises(Died):
            yield


def swapped(table: KitTable, pairs: int) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """Changes that exchange the keys of many pairs of rows without their wide values, and the rows after them."""
    changes = KeyedChanges(table, 0)
    made, rows = list[Any](), list[tuple[Any, ...]]()
    for one in range(0, 2 * pairs, 2):
        made += [
            changes.move(one, 1000 + one, "t"),
            changes.move(one + 1, one, "b"),
            changes.move(1000 + one, one + 1, "a"),
        ]
        rows += [(one, "b", f"w{one + 1}"), (one + 1, "a", f"w{one}")]
    return made, rows


@pytest.mark.parametrize(
    ("point", "passages"),
    [
        pytest.param("merge.saved", 1, marks=pytest.mark.nightly),
        ("merge.begun", 1),
        ("merge.after_part", 2),
        pytest.param("merge.before_end", 1, marks=pytest.mark.nightly),
    ],
)
def test_a_batch_of_moved_rows_without_their_wide_values_is_ended_by_the_next_attempt(
    kit: SpannerKit, tmp_path: Path, point: str, passages: int
) -> None:
    """Staging the batch again would read rows that it has already overwritten."""
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(key, "x", f"w{key}") for key in range(16)])
    made, wanted = swapped(table, 8)
    table.land(made)
    job, _ = table.staged()
    with dies(point, passages):
        table.merged(job)
    assert kit.rows("nonce", table=PARTS) != []
    if point == "merge.saved":
        assert control(table).window == 0 and len(table.rows()) == 16
        assert table.merged(job).outcome is Outcome.DONE or table.apply().outcome is Outcome.DONE
    assert control(table).window == 1, "reading the state ends the merge"
    assert table.rows() == sorted(wanted, key=lambda row: [(False, str(value)) for value in row])
    assert table.row_count() == 16 and kit.rows("nonce", table=PARTS) == []
    assert table.apply([changes.delete(0)]).outcome is Outcome.DONE
    assert table.row_count() == 15


def test_equal_rows_without_a_key_are_counted_once_however_often_a_driver_dies(kit: SpannerKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([changes.row(f"v{number % 4}", 1.5) for number in range(20)])
    gone = [changes.delete(f"v{number % 2}", 1.5) for number in range(6)]
    come = [changes.insert(f"n{number % 3}", 2.5) for number in range(90)]
    table.land([*gone, *come])
    job, _ = table.staged()
    for passages in (2, 2, 3):
        with dies("merge.after_part", passages):
            table.merged(job)
            table.target_state()
    assert control(table).window == 1
    found = [row[1] for row in table.rows()]
    counts = {value: found.count(value) for value in sorted(set(map(str, found)))}
    assert counts == {"n0": 30, "n1": 30, "n2": 30, "v0": 2, "v1": 2, "v2": 5, "v3": 5}
    assert table.row_count() == 104


def test_two_drivers_that_end_one_merge_apply_each_part_once(kit: SpannerKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([])
    table.land([changes.insert(f"n{number}", 2.5) for number in range(60)])
    job, _ = table.staged()
    with dies("merge.begun"):
        table.merged(job)
    with ThreadPoolExecutor(3) as pool:
        states = list(pool.map(lambda _: table.target_state(), range(3)))
    assert {state.control.window for state in states if state.control} == {1}
    assert len(table.rows()) == 60 and table.row_count() == 60


def test_a_fence_raised_before_a_merge_begins_rejects_it_and_one_after_it_waits_for_its_end(
    kit: SpannerKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([])
    before = table.target_state()
    table.land([changes.insert(key, "a", "w") for key in range(30)])
    early, _ = table.staged()
    kit.meanwhile(monkeypatch, lambda: fence(table))
    assert table.merged(early).outcome is Outcome.FENCED and table.rows() == []
    late, _ = table.staged()
    with dies("merge.begun"):
        table.merged(late)
    assert before.control is not None
    raised = fence(table)
    assert raised.window == 1 and len(table.rows()) == 30
    assert table.merged(late).outcome is Outcome.FENCED


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [Fault.ANSWER, Fault.REQUEST, Fault.ABORT])
def test_a_part_whose_commit_loses_a_message_or_is_aborted_is_applied_once(
    kit: SpannerKit, tmp_path: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([])
    table.land([changes.insert("n", 2.5) for _ in range(30)])
    job, _ = table.staged()
    armed = set[str]()

    def arm(point: str) -> None:
        """Once at each point: parts are applied at the same time, and a commit is only repeated once."""
        if point not in armed:
            armed.add(point)
            kit.server.arm(fault)

    monkeypatch.setattr(large_merge, "failpoint", arm)
    result = table.merged(job)
    kit.server.arm(Fault.NONE)
    assert armed == {"merge.after_part", "merge.before_end"}
    assert result.outcome is Outcome.DONE, result.problem
    assert len(table.rows()) == 30 and table.row_count() == 30


@pytest.mark.nightly
@pytest.mark.parametrize("on_delete", [OnDelete.HARD, OnDelete.SOFT])
def test_a_truncate_and_initial_values_of_a_large_table_are_applied_once(
    kit: SpannerKit, tmp_path: Path, on_delete: OnDelete
) -> None:
    table = KitTable(kit, tmp_path, KEYED, on_delete)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(key, "a", "w") for key in range(40)])
    table.land([table.truncate(), *(changes.insert(key, "b", "w") for key in range(30, 60))])
    job, _ = table.staged()
    with dies("merge.after_part", 2):
        table.merged(job)
    table.target_state()
    live = [(key, "b", "w") for key in range(30, 60)]
    soft = on_delete is OnDelete.SOFT
    found = table.rows(*(["_cdc_deleted"] if soft else []))
    assert [row[:3] for row in found if not (soft and row[3])] == live
    assert len(found) == (60 if soft else 30) and table.row_count() == len(found)
    wider = TableSchema("public.t", (*KEYED.columns, Column("n", INT, initial="7")), ("id",))
    assert table.apply([table.alter(wider)]).outcome is Outcome.DONE
    assert {row[3] for row in table.rows()} == {7} and len(table.rows()) == len(found)


@pytest.mark.nightly
def test_an_initial_value_moves_rows_without_a_key_to_other_hashes(kit: SpannerKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([changes.row("a", 1.5), changes.row("a", 1.5), changes.row("b", 1.5)])
    wider = TableSchema("public.t", (*KEYLESS.columns, Column("n", INT, initial="7")))
    table.apply([table.alter(wider)])
    assert table.rows() == [(1, "a", 1.5, 7), (1, "a", 1.5, 7), (1, "b", 1.5, 7)]
    one = {"c": 1, "v": "a", "f": 1.5, "n": 7}
    assert table.apply([table.delete(one)]).outcome is Outcome.DONE
    assert table.rows() == [(1, "a", 1.5, 7), (1, "b", 1.5, 7)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("at_once", "killed"),
    [pytest.param(COMMIT_BYTES, True, id="ours"), pytest.param(limits.COMMIT_BYTES, False, id="Spanner's")],
)
def test_a_batch_of_few_rows_and_more_bytes_than_a_commit_is_applied_in_parts(
    spark: SparkSession, spanner_server: EmbeddedSpanner, tmp_path: Path, at_once: int, killed: bool
) -> None:
    """Beyond our limit in the driver, which dies between two parts, and beyond Spanner's limit by Spark's tasks."""
    schema = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT)), ("id",))
    wide = limits.STRING_CHARACTERS
    keys = range(at_once // wide + 2)
    with spanner_kit(spark, tmp_path, lambda _: spanner_server) as kit:
        table = KitTable(kit, tmp_path, schema)
        table.copy([{"id": key, "v": str(key) * (wide // 2)} for key in keys])
        table.land([table.insert({"id": key, "v": "n" * wide}) for key in keys])
        job, _ = table.staged()
        if killed:
            with dies("merge.after_part", 2):
                table.merged(job)
        else:
            assert table.merged(job).outcome is Outcome.DONE
        assert control(table).window == 1
        assert {(key, len(value), value[0]) for key, value in kit.rows("id", "v")} == {(key, wide, "n") for key in keys}


@pytest.mark.nightly
@pytest.mark.parametrize("engine", [EngineMode.AUTO, EngineMode.SPARK])
def test_a_batch_of_more_than_80000_mutations_is_killed_between_two_transactions_and_repeated(
    spark: SparkSession, spanner_server: EmbeddedSpanner, tmp_path: Path, engine: EngineMode
) -> None:
    """At the limit that Spanner has."""
    schema = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT)), ("id",))
    with spanner_kit(spark, tmp_path, lambda _: spanner_server, max_mutations=80_000) as kit:
        kit.engine = engine
        table = KitTable(kit, tmp_path, schema)
        table.copy([{"id": key, "v": "old"} for key in range(0, 60_000, 3)])
        table.land([table.insert({"id": key, "v": "new"}) for key in range(60_000)])
        job, _ = table.staged()
        if engine is EngineMode.AUTO:
            with dies("merge.after_part"):
                table.merged(job)
        else:
            assert table.merged(job).outcome is Outcome.DONE
        assert control(table).window == 1
        assert table.row_count() == 60_000
        assert sorted(kit.rows("id", "v")) == [(key, "new") for key in range(60_000)]
