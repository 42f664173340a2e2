"""Which slices of a table a backfill copies."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.facts import TableFacts
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, decide
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.slices import Slice, SliceLength, Slices, slice_between
from airflow_cdc_provider.core.spec.snapshot import Snapshot
from airflow_cdc_provider.core.table.schema import Kind
from tests.core import test_selection as selected
from tests.core.test_decide import A, B, facts, log

L = SliceLength


def bounds(every: SliceLength, start: str, end: str) -> tuple[str, str] | None:
    moments = (datetime.fromisoformat(f"{moment}+00:00") for moment in (start, end))
    found = slice_between("public.a", Slices("at", every), *moments)
    return (found.start[:10], found.end[:10]) if found else None


@pytest.mark.parametrize(
    ("every", "start", "end", "found"),
    [
        (L.DAY, "2026-02-28T00:00", "2026-03-01T00:00", ("2026-02-28", "2026-03-01")),
        (L.DAY, "2026-02-28T00:15", "2026-02-28T00:30", None),
        (L.DAY, "2026-02-27T23:45", "2026-02-28T00:00", None),
        (L.DAY, "2026-02-27T23:45", "2026-03-02T00:15", ("2026-02-28", "2026-03-03")),
        (L.MONTH, "2024-02-01T00:00", "2024-02-02T00:00", ("2024-02-01", "2024-03-01")),
        (L.MONTH, "2024-02-02T00:00", "2024-03-01T00:00", None),
        (L.MONTH, "2024-11-15T00:00", "2025-01-15T00:00", ("2024-12-01", "2025-02-01")),
        (L.YEAR, "2024-01-01T00:00", "2024-01-01T00:05", ("2024-01-01", "2025-01-01")),
        (L.YEAR, "2024-01-02T00:00", "2024-12-31T00:00", None),
    ],
)
def test_a_slice_is_copied_by_the_interval_in_which_it_starts(
    every: SliceLength, start: str, end: str, found: tuple[str, str] | None
) -> None:
    assert bounds(every, start, end) == found


@given(
    st.sampled_from(list(L)),
    st.datetimes(datetime(2019, 1, 1), datetime(2021, 1, 1)),
    st.lists(st.integers(1, 60 * 24 * 90), min_size=1, max_size=20),
)
def test_consecutive_intervals_copy_every_slice_once(every: SliceLength, first: datetime, minutes: list[int]) -> None:
    at, found = first.replace(tzinfo=UTC), list[Slice]()
    for length in minutes:
        end = at + timedelta(minutes=length)
        found += [one] if (one := slice_between("t", Slices("at", every), at, end)) else []
        at = end
    assert all(one.end == other.start for one, other in pairwise(found))
    whole = slice_between("t", Slices("at", every), first.replace(tzinfo=UTC), at)
    assert (whole.start, whole.end) == (found[0].start, found[-1].end) if whole else not found


def test_bounds_are_literals_of_the_type_of_the_column() -> None:
    one = Slice("public.a", "at", "2026-02-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00")
    literals = {kind: one.conditions(kind)[0].value for kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)}
    assert literals == {
        Kind.DATE: "2026-02-01",
        Kind.TIMESTAMP: "2026-02-01T00:00:00",
        Kind.TIMESTAMPTZ: "2026-02-01T00:00:00+00:00",
    }
    assert str(one) == "at from 2026-02-01 to 2026-03-01"


def sliced(table: TableFacts) -> TableFacts:
    rule = replace(table.task.rule, snapshot=Snapshot(slices=Slices("id", L.DAY)))
    return replace(table, task=replace(table.task, rule=rule))


def backfill(start: str, end: str, *tables: TableFacts, **changes: object) -> RunDecision:
    interval = (f"2026-01-{start}+00:00", f"2026-01-{end}+00:00")
    return decide(facts(*tables, mode=Mode.REPAIR, interval=interval, **changes))


def test_a_backfill_copies_slices_and_applies_windows_again_to_the_other_tables() -> None:
    decision = backfill("02T00:00:00", "03T00:00:00", sliced(A), B)
    assert decision.plan.stream == ("public.b", "public.a") and decision.plan.repair == (2, 2)
    assert [(one.table, one.start[:10], one.end[:10]) for one in decision.plan.slices] == [
        ("public.a", "2026-01-02", "2026-01-03")
    ]
    assert decision.follow == ("stage", "close_window")


def test_a_slice_may_be_older_than_the_change_log() -> None:
    before = {"log": log(sealed=3, oldest=3)}
    decision = backfill("01T00:00:00", "02T00:00:00", sliced(A), B, **before)
    assert decision.stop is None and decision.plan.stream == ("public.a",) and decision.plan.repair == ()
    assert backfill("01T00:00:00", "02T00:00:00", A, B, **before).stop is not None
    idle = backfill("01T00:15:00", "01T00:30:00", sliced(A), B, **before)
    assert idle.follow == ("close_window",) and any("older than the change log" in note for note in idle.notes)


def test_slices_wait_for_the_stream_lane() -> None:
    assert backfill("02T00:00:00", "03T00:00:00", sliced(A), stream_lane=False).wait


def test_the_column_of_slices_is_a_time_of_a_table_with_a_key() -> None:
    rule = TableRule("public.a", snapshot=Snapshot(slices=Slices("note")))
    (problem,) = selected.run([rule], [selected.table("public.a")])[1]
    assert problem.code == "DEF094"
    missing = replace(rule, snapshot=Snapshot(slices=Slices("at")))
    assert [one.code for one in selected.run([missing], [selected.table("public.a")])[1]] == ["DEF042"]
    history = replace(rule, history=History.SCD2)
    assert "DEF096" in [one.code for one in selected.run([history], [selected.table("public.a")])[1]]
    keyless = selected.run([rule], [selected.table("public.a", key=())])[1]
    assert [one.code for one in keyless] == ["DEF091", "DEF094"]
