"""Notifications of operators: each alert once, and the recovery of each table once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.alert_texts import fill, placeholders
from airflow_cdc_provider.core.decisions.alerts import (
    WHOLE_REPLICATOR,
    Alert,
    Notice,
    Waiting,
    alert_of_run,
    alerts_of,
    grouped,
    needs_attention,
    notices,
)
from airflow_cdc_provider.core.decisions.summaries import summarize
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.notifications import PLACEHOLDERS, Notification, NotifyOn
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState

NOW = "2026-06-01T12:00:00.000+00:00"
HOUR_AGO = "2026-06-01T11:00:00.000+00:00"
ALLOWED = timedelta(minutes=30)
QUESTION = Question("abc", "public.t", 3, ("column a has become text",), (Answer.APPLY, Answer.LEAVE))

kinds = st.sampled_from([kind for kind in NotifyOn if kind is not NotifyOn.RECOVERED])
alerts = st.builds(
    lambda table, kind: Alert(table, kind.value, kind, NOW, f"is {kind}"),
    st.sampled_from(["public.a", "public.b", WHOLE_REPLICATOR]),
    kinds,
)
observations = st.lists(st.lists(alerts, max_size=4, unique_by=lambda alert: alert.key), max_size=6)


def row(state: TableState = TableState.REPLICATING, **fields: object) -> TableRow:
    return replace(TableRow("public.t", "t", state, since=HOUR_AGO, fresh_at=NOW), **fields)  # type: ignore[arg-type]


def asked(question: Question) -> TableRow:
    state = State(TableState.BLOCKED, HOUR_AGO, question=question)
    return row(TableState.BLOCKED, control=ControlRecord("shop", "public.t", "log", "tests", "a", 1, 1, "f", state))


@given(observations)
def test_an_alert_is_sent_when_it_opens_and_the_recovery_when_a_table_has_none_left(
    observations: list[list[Alert]],
) -> None:
    known: list[Alert] = []
    for current in observations:
        sent = notices(known, current, NOW)
        opened = [notice.alert.key for notice in sent if not notice.ended]
        recovered = [notice.alert.table for notice in sent if notice.ended]
        assert Counter(opened) == Counter({alert.key for alert in current} - {alert.key for alert in known})
        before, after = {alert.table for alert in known}, {alert.table for alert in current}
        assert Counter(recovered) == Counter(before - after)
        assert notices(current, current, NOW) == []
        known = current


def test_each_problem_of_a_row_is_an_alert_with_its_reason_and_remedy() -> None:
    blocked = row(TableState.BLOCKED, reason="two rows have one key", remedy="airflow cdc resync shop")
    [alert] = alerts_of([blocked], ALLOWED, NOW)
    assert (alert.kind, alert.reason, alert.remedy, alert.since) == (
        NotifyOn.BLOCKED,
        "two rows have one key",
        "airflow cdc resync shop",
        HOUR_AGO,
    )
    failing = row(TableState.FAILING, error="no route to host", failing_since=HOUR_AGO)
    assert [(one.kind, one.reason) for one in alerts_of([failing], ALLOWED, NOW)] == [
        (NotifyOn.FAILING, "no route to host")
    ]
    late = alerts_of([row(fresh_at=HOUR_AGO)], ALLOWED, NOW)
    assert [one.kind for one in late] == [NotifyOn.LATE] and HOUR_AGO in late[0].reason
    assert alerts_of([row(), row(TableState.DROPPED, fresh_at=HOUR_AGO)], ALLOWED, NOW) == []


def test_a_table_that_waits_for_an_answer_is_a_question_and_not_blocked_and_the_next_question_is_another_alert() -> (
    None
):
    [first] = alerts_of([asked(QUESTION)], ALLOWED, NOW)
    assert first.kind is NotifyOn.QUESTION and first.reason == "column a has become text"
    [second] = alerts_of([asked(replace(QUESTION, id="def"))], ALLOWED, NOW)
    assert [notice.alert for notice in notices([first], [second], NOW)] == [second]


def test_only_a_receiver_of_the_trouble_is_notified_of_its_end() -> None:
    ended = Notice(Alert("public.t", "recovered", NotifyOn.RECOVERED, NOW, ""), (NotifyOn.BLOCKED,))
    assert ended.concerns({NotifyOn.BLOCKED, NotifyOn.RECOVERED})
    assert not ended.concerns({NotifyOn.LATE, NotifyOn.RECOVERED})
    assert not ended.concerns({NotifyOn.BLOCKED})


def waiting(*found: Alert) -> list[Waiting]:
    return [Waiting(number, Notice(alert), NOW) for number, alert in enumerate(found)]


def test_tables_with_one_cause_are_one_message_with_a_bounded_length() -> None:
    down = [
        Alert(f"public.t{n:03}", "failing", NotifyOn.FAILING, NOW, "no route to host", "start it") for n in range(200)
    ]
    other = Alert("public.x", "failing", NotifyOn.FAILING, NOW, "no such column")
    groups = grouped(waiting(*down, other))
    assert [len(group) for group in groups] == [200, 1]
    values = placeholders("shop", [one.notice.alert for one in groups[0]], "http://airflow/shop")
    assert values["tables"].endswith("public.t009 and 190 more")
    assert values["text"].splitlines() == [
        f"shop: {values['tables']} are failing",
        "no route to host",
        "do: start it",
        "http://airflow/shop",
    ]


def test_a_run_that_did_nothing_is_an_alert_of_the_replicator() -> None:
    problem = Problem("SRC010", "the source does not answer", found="timeout", do="start it")
    alert = alert_of_run(problem, NOW)
    values = placeholders("shop", [alert], "")
    assert values["title"] == "shop: the replicator is failing"
    assert values["reason"] == "the source does not answer (timeout)"


@given(st.text())
def test_values_are_never_read_as_placeholders_and_are_escaped_in_html(text: str) -> None:
    values = dict.fromkeys(PLACEHOLDERS, f"{{link}}<b>{text}")
    filled = fill({"text": "{reason}!", "html_content": "<p>{reason}</p>"}, values)
    assert filled["text"] == f"{{link}}<b>{text}!"
    assert filled["html_content"].startswith("<p>{link}&lt;b&gt;")


@given(
    st.lists(
        st.builds(
            row,
            st.sampled_from(list(TableState)),
            fresh_at=st.sampled_from(["", HOUR_AGO, NOW]),
            question=st.sampled_from([None, QUESTION]),
        ),
        max_size=3,
    )
)
def test_a_replicator_with_an_alert_needs_attention(rows: list[TableRow]) -> None:
    if alerts_of(rows, ALLOWED, NOW):
        assert needs_attention(summarize(rows), ALLOWED, NOW)


def test_an_entry_has_all_events_by_default() -> None:
    assert Notification(via="a.B", arguments={}).on == tuple(NotifyOn)
