"""What a list of replicators shows, against the rows of their tables."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.freshness import freshness
from airflow_cdc_provider.core.decisions.summaries import summarize
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

NOW = "2026-06-01T12:00:00.000+00:00"
ALLOWED = timedelta(minutes=30)

times = st.one_of(
    st.just(""),
    st.integers(0, 7200).map(
        lambda ago: (datetime.fromisoformat(NOW) - timedelta(seconds=ago)).isoformat(timespec="milliseconds")
    ),
)
rows = st.builds(
    TableRow,
    table=st.just("public.t"),
    target=st.just("t"),
    state=st.sampled_from(list(TableState)),
    since=times,
    fresh_at=times,
    failing_since=times,
    seen_at=times,
    rows=st.one_of(st.none(), st.integers(0, 9)),
    changes=st.dictionaries(st.sampled_from(["insert", "delete"]), st.integers(0, 9)),
)


@given(st.lists(rows, max_size=6))
def test_a_summary_is_late_if_a_table_is_and_has_the_oldest_lag(tables: list[TableRow]) -> None:
    summary = summarize(tables)
    each = [freshness(row, ALLOWED, NOW) for row in tables]
    assert summary.is_late(ALLOWED, NOW) is any(one.late for one in each)
    lags = [one.lag_s for one in each if one.lag_s is not None]
    found = (datetime.fromisoformat(NOW) - datetime.fromisoformat(summary.fresh_at)).total_seconds() if lags else None
    assert found == max(lags, default=None)
    assert summary.tables == len(tables) and set(summary.states) == {row.state for row in tables}


def test_rows_and_changes_of_tables_without_a_copy_do_not_count() -> None:
    copied = TableRow("a", "a", TableState.REPLICATING, rows=5, changes={"insert": 2, "update": 1})
    dropped = TableRow("b", "b", TableState.DROPPED, rows=7, changes={"insert": 9})
    summary = summarize([copied, dropped])
    assert (summary.rows, summary.changes, summary.tables) == (5, 3, 2)


def test_a_new_table_with_a_question_waits() -> None:
    question = Question("q", "c", 1, ("a new table",), (Answer.LEAVE,))
    assert summarize([TableRow("c", "c", TableState.NEW, question=question)]).questions == 1
    assert summarize([]).fresh_at == "" and summarize([]).seen_at == ""
