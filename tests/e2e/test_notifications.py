"""Notifications of a real Airflow: a run reports a blocked table, and the monitor a late one without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from email.message import EmailMessage

import pytest

from tests.scenario import Scenario
from tests.smtp_server import SmtpServer, smtp_server
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

FRESHNESS_S = 180
"""Longer than a run on a busy machine."""
SETTINGS = f"""\
freshness: {FRESHNESS_S}s
notify:
  - via: airflow.providers.smtp.notifications.smtp.SmtpNotifier
    arguments: {{smtp_conn_id: mail, to: ops@example.org, subject: "{{title}}", html_content: "<p>{{text}}</p>"}}
"""
MONITOR = """\
from airflow_cdc_provider.monitor_dag import build_monitor_dag

dag = build_monitor_dag(__file__, None)  # an Airflow DAG
"""


@pytest.fixture(scope="module")
def mail() -> Iterator[SmtpServer]:
    with smtp_server() as server:
        yield server


@pytest.fixture(scope="module")
def mailed(scenario: Callable[..., Scenario], mail: SmtpServer) -> Scenario:
    mailed = scenario("mailed", more=SETTINGS)
    connection = {"connection_id": "mail", "conn_type": "smtp", "host": "127.0.0.1", "port": mail.port}
    extra = '{"disable_tls": true, "disable_ssl": true, "from_email": "cdc@example.org"}'
    mailed.airflow.request("POST", "/connections", json={**connection, "extra": extra})
    return mailed


def subjects(messages: list[EmailMessage]) -> list[str]:
    return [str(message["Subject"]) for message in messages]


def test_a_blocked_table_and_its_recovery_are_notified_once_each(mailed: Scenario, mail: SmtpServer) -> None:
    mailed.must_tick()
    mail.received.clear()
    mailed.execute("alter table orders alter column id type text using id::text")
    mailed.execute("update orders set id = id where id = '1'")
    assert [mailed.tick()["run"] for _ in range(2)] == ["failed", "failed"]
    [blocked] = [text for text in subjects(mail.received) if "public.orders" in text and "late" not in text]
    assert blocked in ("mailed: public.orders is blocked", "mailed: public.orders is waiting for an answer")
    mailed.cdc("resync", "mailed", "--table", "public.orders")
    mailed.must_tick()
    assert "mailed: public.orders is in order again" in subjects(mail.received)


def test_the_monitor_notifies_of_late_copies_without_a_run(mailed: Scenario, mail: SmtpServer) -> None:
    mailed.must_tick()
    mail.received.clear()
    (mailed.airflow.dags / "cdc_monitor.py").write_text(MONITOR)
    mailed.airflow.wait_for_dag("cdc_monitor")
    until(lambda: monitored(mailed) and bool(mail.received), "a notification", every_s=5)
    assert all(text.startswith("mailed: ") and text.endswith(" late") for text in subjects(mail.received))
    html = mail.received[0].get_body(("html",))
    assert html is not None and "/dags/mailed/plugin/replicator" in html.get_content()
    known = len(mail.received)
    assert monitored(mailed) and len(mail.received) == known, "once"


def monitored(mailed: Scenario) -> bool:
    return mailed.airflow.wait("cdc_monitor", mailed.airflow.trigger("cdc_monitor")) == "success"
