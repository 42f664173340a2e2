"""When a first copy that was begun can be continued."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from airflow_cdc_provider.connectors.copied.kept_copies import CopyBasis, KeptCopy, KeptSplit
from airflow_cdc_provider.connectors.key_ranges import LARGE_SPLIT_ROWS, key_ranges, range_of
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.run_decision import decide
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.table.copy_extent import CopyExtent
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from tests.core.test_decide import command, facts, log, moves, table

SCHEMA = TableSchema("public.a", (Column("id", LogicalType(Kind.INT64)),), ("id",))
WIDER = replace(SCHEMA, columns=(*SCHEMA.columns, Column("n", LogicalType(Kind.INT32))))
BASIS = CopyBasis("l1", 1, {"system": "7"}, "d1", SCHEMA, CopyExtent())
IDENTITY = TableIdentity("public.a", {}, 1)
COPY = Copy("f", {"slot": "3"}, SCHEMA, SplitRead(("s1", "s2"), lasting=True), 20, identity=IDENTITY)
KEPT = KeptCopy("c1", "2026-01-01T00:00:00+00:00", 3, BASIS, COPY)


def test_an_unchanged_table_is_continued_while_the_log_reaches_back_to_its_anchor() -> None:
    later = replace(COPY, floor="g", position={"slot": "9"}, read=SplitRead(("s1", "s2", "s3")), rows=30)
    assert KEPT.why_not_continued(BASIS, later, oldest=3) == ""
    assert "window 3" in KEPT.why_not_continued(BASIS, later, oldest=4)
    assert replace(KEPT, window=0).why_not_continued(BASIS, later, oldest=1) == ""
    assert "window 1" in replace(KEPT, window=0).why_not_continued(BASIS, later, oldest=2)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"log_id": "l2"}, "log_id"),
        ({"epoch": 2}, "epoch"),
        ({"source_identity": {"system": "8"}}, "source_identity"),
        ({"definition_sha256": "d2"}, "definition_sha256"),
        ({"schema": WIDER}, "schema"),
        ({"extent": CopyExtent(True, (Condition("id", Comparison.LESS, 5),))}, "extent"),
    ],
)
def test_another_basis_starts_another_copy(changed: dict[str, object], name: str) -> None:
    assert KEPT.why_not_continued(replace(BASIS, **changed), COPY, 1) == f"another {name}"  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [replace(COPY, schema=WIDER), replace(COPY, identity=None)])
def test_another_table_at_the_source_starts_another_copy(now: Copy) -> None:
    assert KEPT.why_not_continued(BASIS, now, 1)


def test_the_files_of_a_copy_are_read_back() -> None:
    assert KeptCopy.decode(KEPT.encode(), "COPY") == KEPT
    split = KeptSplit(7, [{"path": "a.parquet", "size": 9}])
    assert KeptSplit.decode(split.encode(), "1.json") == split


@pytest.mark.parametrize(
    ("rows", "least", "most"), [(0, None, None), (9, 1, 9), (10**5, -50, 10**6), (10**8, 0, 10**9)]
)
def test_each_row_belongs_to_one_split_at_any_time(rows: int, least: int | None, most: int | None) -> None:
    ranges = [range_of(split) for split in key_ranges(rows, least, most, cores=2, where=())]
    assert ranges[0].low is None and ranges[-1].high is None
    assert all(one.high == other.low for one, other in pairwise(ranges))
    assert rows / len(ranges) <= 2 * LARGE_SPLIT_ROWS


def test_a_paused_copy_is_left_alone_until_it_is_resumed() -> None:
    pause = State(TableState.PAUSED, "2026-01-01", "pause by ann")
    decision = decide(facts(table("public.a", first_copy=pause), table("public.b"), log=log(2)))
    assert moves(decision) == {"public.a": TableAction.PAUSED, "public.b": TableAction.COPY}
    assert decision.plan.copy == ("public.b",) and decision.plan.reasons["public.a"] == "pause by ann"


def test_a_blocked_copy_is_left_alone_until_it_is_asked_for() -> None:
    blocked = State(TableState.BLOCKED, "2026-01-01", "a bad value", "correct it")
    tables = (table("public.a", first_copy=blocked), table("public.b"))
    decision = decide(facts(*tables, log=log(2)))
    assert moves(decision) == {"public.a": TableAction.BLOCKED, "public.b": TableAction.COPY}
    (problem,) = [verdict.problem for verdict in decision.table_decisions if verdict.problem]
    assert (problem.what, problem.do, problem.data) == ("a bad value", "correct it", "the target has no copy yet")
    asked = decide(facts(*tables, log=log(2), commands=(command(CommandKind.RESYNC, "public.a"),)))
    assert moves(asked)["public.a"] is TableAction.COPY
