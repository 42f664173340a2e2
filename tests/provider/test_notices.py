"""Notifications through Airflow's notifiers: once for each problem, again if the sender dies, and by the monitor if no
run ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowException
from airflow.utils.state import DagRunState

from airflow_cdc_provider.control.close_window import CloseResult
from airflow_cdc_provider.core.decisions.alerts import Alert, alert_of_run
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.notifications import Notification, NotifyOn
from airflow_cdc_provider.core.table.state_rows import Lane, TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import parse_utc, utc_now, utc_text
from airflow_cdc_provider.hooks.notifiers import make_notifier, notifier_problems
from airflow_cdc_provider.operators import notices, window
from airflow_cdc_provider.operators.monitor import MonitorOperator
from airflow_cdc_provider.operators.notices import alerts_of_tables, notify
from airflow_cdc_provider.operators.window import OpenWindowOperator
from tests.provider.api_client import add_dags, set_runs
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness
from tests.smtp_server import SmtpServer, smtp_server

MONITORING = Path(__file__).parents[2] / "docs/guides/monitoring.md"
SENT: list[str] = []
FAULTS: list[BaseException] = []
RECORDER = f"{__name__}.Recorder"
CONTEXT: Any = {}


class Recorder(BaseNotifier):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None:
        if FAULTS and not isinstance(FAULTS[0], SystemExit):
            raise FAULTS.pop()
        SENT.append(self.text)
        if FAULTS:
            raise FAULTS.pop()


@pytest.fixture(autouse=True)
def _nothing_sent() -> Iterator[None]:
    SENT.clear()
    yield
    assert not FAULTS


def entry(text: str = "{title}", *on: NotifyOn) -> Notification:
    return Notification(on=on or tuple(NotifyOn), via=RECORDER, arguments={"text": text})


def with_notify(harness: RunHarness, *entries: Notification) -> Definition:
    harness.definition = replace(harness.definition, notify=entries or (entry(),))
    definition = harness.replicator.definition
    harness.state.replicators.change(definition.name, lambda _: ReplicatorEntry(definition, "2026-01-01"))
    return definition


def set_row(harness: RunHarness, table: str = "public.a", **fields: Any) -> None:
    harness.state.change_tables("shop", lambda rows: [replace(rows[table], **fields)])


def alerts(harness: RunHarness, definition: Definition) -> list[Alert]:
    return alerts_of_tables(definition, harness.state.tables("shop").values(), utc_now())


def sent_at_end(harness: RunHarness, definition: Definition, result: CloseResult | None = None) -> list[str]:
    """What is sent at the end of a run."""
    SENT.clear()
    of_run = [alert_of_run(problem, utc_now()) for problem in (result.of_run if result else ())]
    notify(harness.state, definition, CONTEXT, alerts(harness, definition), of_run)
    return list(SENT)


def failed_run(harness: RunHarness, run_id: str) -> CloseResult:
    """While the source does not answer."""
    content = harness.source.path.read_text()
    harness.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        harness.open(run_id)
    harness.source.path.write_text(content)
    return harness.close(run_id)


def test_a_problem_is_notified_once_and_its_end_once(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness)
    assert sent_at_end(harness, definition) == []
    set_row(harness, state=TableState.BLOCKED, reason="two rows have one key")
    assert sent_at_end(harness, definition) == ["shop: public.a is blocked"]
    assert sent_at_end(harness, definition) == []
    set_row(harness, state=TableState.REPLICATING, reason="")
    assert sent_at_end(harness, definition) == ["shop: public.a is in order again"]
    assert sent_at_end(harness, definition) == []
    assert harness.state.alerts.replicators() == frozenset()


def test_another_problem_of_the_same_kind_is_notified_and_one_that_comes_back_is_not(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness, entry("{reason}"))
    timeout, refused = "TGT010 timeout | found: 31 s", "TGT011 permission denied"
    failing = {"state": TableState.FAILING, "failing_since": utc_now()}
    set_row(harness, **failing, reason="timeout", error=timeout)
    assert sent_at_end(harness, definition) == ["timeout"]
    set_row(harness, reason="permission denied", error=refused)
    assert sent_at_end(harness, definition) == ["permission denied"]
    for error in (timeout.replace("31", "40"), refused):
        set_row(harness, error=error)
        assert sent_at_end(harness, definition) == []
    set_row(harness, state=TableState.REPLICATING, error="")
    assert len(sent_at_end(harness, definition)) == 1
    set_row(harness, **failing, error=timeout)
    assert len(sent_at_end(harness, definition)) == 1


def test_a_table_that_was_resumed_and_is_blocked_again_is_notified_again(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness)
    for number in range(2, 6, 2):
        harness.source.change("public.a")
        harness.open(f"r{number}")
        problem = Problem("TGT042", "two rows have one key", do="resync")
        result = TableResult("public.a", Outcome.BLOCKED, problem=problem)
        harness.write_result(f"r{number}", "stage", StepKind.STAGE, [result])
        harness.close(f"r{number}")
        assert sent_at_end(harness, definition) == ["shop: public.a is blocked"]
        harness.run(f"r{number + 1}")
        assert sent_at_end(harness, definition) == []
        harness.request(CommandKind.RESUME, "public.a")


def test_a_source_that_does_not_answer_is_notified_once_for_the_replicator(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness)
    assert sent_at_end(harness, definition, failed_run(harness, "r2")) == ["shop: the replicator is failing"]
    assert sent_at_end(harness, definition, failed_run(harness, "r3")) == []
    assert sent_at_end(harness, definition, harness.run("r4")) == ["shop: the replicator is in order again"]


def test_the_reason_of_a_failed_opening_is_that_of_the_alert(harness: RunHarness) -> None:
    replicated(harness)
    left: dict[str, Any] = {}
    task = SimpleNamespace(
        xcom_push=left.__setitem__, xcom_pull=lambda task_ids, key: left.get(key) if task_ids == "open_window" else None
    )
    context: Any = {"ti": task, "dag_run": SimpleNamespace(run_id="r2", run_type="manual", data_interval_start=None)}
    result = failed_run(harness, "r2")
    assert "no decision" in window.alerts_of_run(result, context)[0].reason
    operator = OpenWindowOperator(task_id="open_window", definition={})
    operator.replicator = lambda: raised(SourceUnavailable.of("SRC001", "the source does not answer"))  # type: ignore
    with pytest.raises(AirflowException):
        operator.execute(context)
    assert [alert.reason for alert in window.alerts_of_run(result, context)] == ["the source does not answer"]
    assert window.alerts_of_run(CloseResult(), context) == []


def raised(error: Exception) -> Any:
    raise error


def test_each_receiver_gets_the_events_it_asked_for(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(
        harness, entry("one {kind}", NotifyOn.BLOCKED, NotifyOn.RECOVERED), entry("two {kind}", NotifyOn.FAILING)
    )
    set_row(harness, "public.a", state=TableState.BLOCKED)
    set_row(harness, "public.b", state=TableState.FAILING, error="timeout", failing_since=utc_now())
    assert sorted(sent_at_end(harness, definition)) == ["one blocked", "two failing"]
    set_row(harness, "public.a", state=TableState.REPLICATING)
    set_row(harness, "public.b", state=TableState.REPLICATING)
    assert sent_at_end(harness, definition) == ["one recovered"]


def test_what_one_notifier_could_not_send_is_sent_later_and_delays_no_other(
    harness: RunHarness, caplog: pytest.LogCaptureFixture
) -> None:
    replicated(harness)
    definition = with_notify(harness, entry("one {tables}"), entry("two {tables}"))
    set_row(harness, state=TableState.BLOCKED)
    FAULTS.append(ConnectionError("no route to host"))
    assert sent_at_end(harness, definition) == ["two public.a"]
    assert "NTF002" in caplog.text and "no route to host" in caplog.text
    assert sent_at_end(harness, definition) == ["one public.a"]
    assert sent_at_end(harness, definition) == []


def test_a_sender_that_dies_after_it_sent_sends_again_and_loses_nothing(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness)
    set_row(harness, state=TableState.BLOCKED)
    FAULTS.append(SystemExit())
    with pytest.raises(SystemExit):
        sent_at_end(harness, definition)
    assert sent_at_end(harness, definition) == ["shop: public.a is blocked"]
    assert sent_at_end(harness, definition) == []


def test_what_cannot_be_delivered_for_a_week_is_given_up(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    replicated(harness)
    definition = with_notify(harness)
    set_row(harness, state=TableState.BLOCKED)
    monkeypatch.setattr(notices, "KEPT", timedelta())
    FAULTS.append(ConnectionError("gone"))
    assert sent_at_end(harness, definition) == [] and "given up" in caplog.text
    assert harness.state.alerts.waiting("shop") == ()


def test_one_process_at_a_time_sends(harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness)
    set_row(harness, state=TableState.BLOCKED)
    assert harness.state.acquire("shop", notices.LANE, "another process", 60)
    assert sent_at_end(harness, definition) == []
    harness.state.release("shop", notices.LANE, "another process")
    assert sent_at_end(harness, definition) == ["shop: public.a is blocked"]


def test_the_monitor_notifies_of_a_late_table_without_a_run(
    cdc: CommandLine, harness: RunHarness, caplog: pytest.LogCaptureFixture
) -> None:
    replicated(harness)
    with_notify(harness)
    long_ago = (datetime.now(UTC) - timedelta(days=2)).isoformat(timespec="milliseconds")
    monitor = MonitorOperator(task_id="monitor")
    assert monitor.execute(CONTEXT) == {} and SENT == []
    set_row(harness, fresh_at=long_ago)
    assert monitor.execute(CONTEXT) == {"shop": ["public.a"]}
    assert SENT == ["shop: public.a is late"] and "public.a is late" in caplog.text
    assert monitor.execute(CONTEXT) == {"shop": ["public.a"]} and len(SENT) == 1
    set_row(harness, fresh_at=utc_now())
    assert monitor.execute(CONTEXT) == {} and SENT[1:] == ["shop: public.a is in order again"]


def pause_dag(harness: RunHarness) -> None:
    add_dags(["shop"], paused=True)


def hang_in_spark(harness: RunHarness) -> None:
    """The run holds its lane, and its task waits: in a worker, or for a triggerer that has ended."""
    harness.source.change("public.a")
    harness.open("r2")
    set_runs("shop", [("r2", DagRunState.RUNNING, datetime.now(UTC), timedelta())])
    assert harness.state.holder("shop", Lane.STREAM) == "r2"


@pytest.mark.parametrize("stops", [pause_dag, hang_in_spark])
def test_copies_become_late_by_themselves_when_their_dag_is_paused_or_its_run_hangs(
    metadata_database: None, cdc: CommandLine, harness: RunHarness, stops: Callable[[RunHarness], None]
) -> None:
    replicated(harness)
    definition = with_notify(harness)
    stops(harness)
    monitor = MonitorOperator(task_id="monitor")
    assert monitor.execute(CONTEXT) == {} and SENT == []
    for table in ("public.a", "public.b"):
        row = harness.state.tables("shop")[table]
        set_row(
            harness, table, fresh_at=utc_text(parse_utc(row.fresh_at) - definition.freshness - timedelta(minutes=1))
        )
    assert monitor.execute(CONTEXT) == {"shop": ["public.a", "public.b"]}
    assert SENT == ["shop: public.a, public.b are late"]


def test_the_monitor_leaves_the_alert_of_a_run_open(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    definition = with_notify(harness)
    assert len(sent_at_end(harness, definition, failed_run(harness, "r2"))) == 1
    SENT.clear()
    MonitorOperator(task_id="monitor").execute(CONTEXT)
    assert SENT == []


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmtpServer]:
    with smtp_server() as server:
        extra = {"disable_tls": True, "disable_ssl": True, "from_email": "cdc@example.org"}
        connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": server.port, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_MAIL", json.dumps(connection))
        yield server


def test_airflows_own_mail_notifier_sends_the_message_with_escaped_html(harness: RunHarness, mail: SmtpServer) -> None:
    replicated(harness)
    by_mail = Notification(
        via="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        arguments={
            "smtp_conn_id": "mail",
            "to": "operators@example.org",
            "subject": "{title}",
            "html_content": "<p>{text}</p>",
        },
    )
    definition = with_notify(harness, by_mail)
    assert notifier_problems(definition.notify) == []
    set_row(harness, state=TableState.BLOCKED, reason="column <b> has {{ conn.mail }}", remedy="resync")
    notify(harness.state, definition, CONTEXT, alerts(harness, definition), ())
    [message] = mail.received
    assert message["Subject"] == "shop: public.a is blocked" and message["To"] == "operators@example.org"
    html = message.get_body(("html",))
    assert html is not None
    assert "column &lt;b&gt; has {{ conn.mail }}<br>" in html.get_content()


DOCUMENTED = from_plain(
    tuple[Notification, ...],
    yaml.safe_load(re.findall(r"```yaml\n(notify:.*?)```", MONITORING.read_text(), re.DOTALL)[0])["notify"],
)


@pytest.mark.parametrize("entry", DOCUMENTED, ids=[entry.via.rpartition(".")[2] for entry in DOCUMENTED])
def test_the_notifiers_of_the_guide_accept_their_arguments(entry: Notification) -> None:
    assert notifier_problems([entry]) == []


@pytest.mark.parametrize(
    ("via", "arguments", "found"),
    [
        ("no.such.module.Notifier", {}, "No module named"),
        ("airflow.sdk.BaseHook", {}, "a type"),
        ("airflow.sdk.NoSuch", {}, "no such name"),
        (RECORDER, {"txt": "{title}"}, "txt"),
    ],
)
def test_a_notifier_that_cannot_be_used_is_named_by_check(via: str, arguments: dict[str, str], found: str) -> None:
    [problem] = notifier_problems([Notification(via=via, arguments=arguments)])
    assert problem.code == "NTF001" and via in problem.where and found in problem.found
    with pytest.raises(CheckFailed):
        make_notifier(via, arguments)


def test_deleted_replicators_are_not_monitored(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    row = TableRow("public.t", "t", TableState.BLOCKED)
    harness.state.change_tables("gone", lambda _: [row])
    assert MonitorOperator(task_id="monitor").execute(CONTEXT) == {}
