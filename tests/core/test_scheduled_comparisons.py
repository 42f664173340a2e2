"""When a table is compared by the schedule, what is recorded, and what an operator is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.proof.differences import RowDifference, report_lines, row_differences
from airflow_cdc_provider.core.proof.repairs import why_not_repaired
from airflow_cdc_provider.core.proof.schedule import (
    DueComparison,
    difference_problem,
    due_comparison,
    verified_row,
)
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.verification import OnDifference, Verify
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.table.verified import Verified

DAILY = Verify(timedelta(days=1))
AT, NEXT_DAY, SAME_DAY = "2026-01-02T00:00:00+00:00", "2026-01-03T00:00:00+00:00", "2026-01-02T23:59:59+00:00"
CONTROL = ControlRecord("shop", "public.a", "l", "o", "a", 1, 3, "f", State(TableState.REPLICATING, AT))
ROW = TableRow("public.a", "a", TableState.REPLICATING, AT, control=CONTROL)
RULE = TableRule("public.a")
SCHEMA = TableSchema("public.a", (Column("id", LogicalType(Kind.INT64), False),), ("id",))
DIFFERENT: dict[str, Any] = {"identical": False, "differing": 2, "differences": ["7", "9"]}


def result(**detail: Any) -> TableResult:
    return TableResult("public.a", Outcome.DONE, window=5, detail=detail)


def verified(**changes: Any) -> Verified:
    return replace(Verified(AT, 5, True), **changes)


def due(verify: Verify, row: TableRow | None = ROW, now: str = NEXT_DAY, answer: Answer | None = None) -> Any:
    return due_comparison(verify, row, answer, now)


def test_a_table_is_due_some_time_after_its_copy_and_after_each_comparison() -> None:
    assert due(DAILY) == DueComparison()
    assert due(DAILY, now=SAME_DAY) is None
    assert due(DAILY, replace(ROW, since="", verified=verified())) == DueComparison()
    assert due(DAILY, replace(ROW, verified=verified(at=NEXT_DAY))) is None
    assert due(Verify()) is None


@pytest.mark.parametrize("state", [TableState.PAUSED, TableState.BLOCKED, TableState.FAILING, TableState.RESYNCING])
def test_only_tables_in_the_stream_are_due(state: TableState) -> None:
    assert due(DAILY, replace(ROW, state=state)) is None
    assert due(DAILY, replace(ROW, control=None)) is None
    assert due(DAILY, None) is None


def test_a_sample_begins_where_the_last_one_ended() -> None:
    tenth = replace(DAILY, sample=0.1, repair=OnDifference.ON)
    assert due(tenth) == DueComparison(repair=True, sampled=True)
    after = replace(ROW, verified=verified(sampled=True, upto=("a", "7")))
    assert due(tenth, after) == DueComparison(repair=True, sampled=True, after=("a", "7"))
    assert due(DAILY, after) == DueComparison(), "all rows"


def test_the_result_of_a_comparison_is_recorded() -> None:
    found = verified_row(DAILY, result(**DIFFERENT, inexact=True, sample={"upto": ["7"]}), None, AT)
    assert found == Verified(AT, 5, False, 2, inexact=True, sampled=True, upto=("7",))
    assert found.shown == "2026-01-02T00:00 2 differ, inexact, sample"
    assert verified(differing=2, identical=False, repaired=2).shown == "2026-01-02T00:00 2 differ, 2 repaired"
    assert verified().shown == "2026-01-02T00:00 identical"
    before = verified()
    assert verified_row(DAILY, None, before, NEXT_DAY) is before
    failed = TableResult("public.a", Outcome.FAILING)
    assert verified_row(DAILY, failed, before, NEXT_DAY) is before, "a comparison that failed"


def test_the_result_of_a_comparison_is_recorded_after_a_clock_was_set_back() -> None:
    before = verified(at=NEXT_DAY)
    later = verified_row(DAILY, replace(result(**DIFFERENT), window=6), before, AT)
    assert later and (later.at, later.window, later.identical) == (AT, 6, False)
    assert verified_row(DAILY, replace(result(**DIFFERENT), window=4), before, AT) is before, "an earlier run"
    other_log = verified_row(DAILY, replace(result(**DIFFERENT), window=1), verified(), NEXT_DAY)
    assert other_log and other_log.window == 1, "the windows of a new log begin again"


def test_an_operator_is_asked_once_about_the_same_rows_and_a_repair_is_due_at_once() -> None:
    ask = replace(DAILY, repair=OnDifference.ASK)
    first = verified_row(ask, result(**DIFFERENT), None, AT)
    assert first and first.question and first.question.answers == (Answer.REPAIR, Answer.LEAVE)
    assert first.question.changes == ("2 rows differ from the source, by their keys: 7, 9",)
    assert first.question.about_difference
    row = replace(ROW, verified=first)
    assert due(ask, row, SAME_DAY) is None
    assert due(ask, row, SAME_DAY, Answer.LEAVE) is None
    assert due(ask, row, SAME_DAY, Answer.REPAIR) == DueComparison(repair=True)
    again = verified_row(ask, replace(result(**DIFFERENT), window=8), first, NEXT_DAY)
    assert again and again.question == first.question
    other = verified_row(ask, result(**{**DIFFERENT, "differing": 3}), first, NEXT_DAY)
    assert other and other.question and other.question.id != first.question.id
    repaired = verified_row(ask, result(**DIFFERENT, repaired=2), first, NEXT_DAY)
    assert repaired and repaired.question is None
    hopeless = verified_row(ask, result(**DIFFERENT, not_repaired="no key; do: resync"), first, NEXT_DAY)
    assert hopeless and hopeless.question is None, "no answer could repair it"


def test_a_difference_that_stays_is_a_problem_of_the_run() -> None:
    differing = verified(identical=False, differing=2)
    problem = difference_problem("shop", "public.a", differing)
    assert problem and (problem.code, problem.do) == ("VER006", "airflow cdc verify shop --table public.a --repair")
    reason = replace(differing, not_repaired="the table has no key; do: airflow cdc resync shop")
    assert (found := difference_problem("shop", "public.a", reason)) and found.do == "airflow cdc resync shop"
    asked = verified_row(replace(DAILY, repair=OnDifference.ASK), result(**DIFFERENT), None, AT)
    assert asked and difference_problem("shop", "public.a", asked) is None
    for fine in (verified(), replace(differing, repaired=2), replace(differing, inexact=True)):
        assert difference_problem("shop", "public.a", fine) is None


def test_what_cannot_be_repaired_has_a_reason_with_a_remedy() -> None:
    def why(
        schema: TableSchema = SCHEMA,
        rule: TableRule = RULE,
        control: ControlRecord = CONTROL,
        exact: bool = True,
        more: bool = False,
    ) -> str:
        return why_not_repaired("shop", rule, schema, control, exact, more)

    assert why() == ""
    assert "a history" in why(rule=replace(RULE, history=History.SCD2))
    resync = "do: airflow cdc resync shop --table public.a"
    assert resync in why(replace(SCHEMA, key=())) and resync in why(exact=False) and resync in why(more=True)
    waiting = replace(CONTROL, carry=CarryOver(counts={Carried.DIRTY: 2}))
    assert "2 records of the table wait" in why(control=waiting)


def test_the_report_has_a_line_for_each_value_that_differs() -> None:
    rows = [("1", "a,b", 1), ("1", "a,c", -1), ("2\x01x", "d,e", 1), ("3", "f,g", -1), ("4", "h,i", -1)]
    found = row_differences(rows)
    assert found[0] == RowDifference("1", ("a", "b"), ("a", "c"))
    lines = [(one.key, one.column, one.source_hash, one.target_hash) for one in report_lines(found, ("x", "y"), False)]
    assert lines == [
        ("1", "y", "b", "c"),
        ("2, x", "x", "d", None),
        ("2, x", "y", "e", None),
        ("3", "x", None, "f"),
        ("3", "y", None, "g"),
        ("4", "x", None, "h"),
        ("4", "y", None, "i"),
    ]
    (line,) = report_lines(row_differences([("text", "md5", -2)]), ("x", "y"), keyless=True)
    assert (line.column, line.source_hash, line.target_hash) == (None, None, "md5")
