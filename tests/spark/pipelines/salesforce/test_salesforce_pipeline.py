"""A Salesforce org, end to end: first copy, transactions, windows, Delta. The copies must equal the ledger of the
org."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.sources.salesforce import bulk
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import TableResult
from airflow_cdc_provider.core.spec.definition import Columns, Reconcile
from airflow_cdc_provider.core.table.published_cut import select_cut_tables
from airflow_cdc_provider.core.table.state_rows import Lane
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.change_events import Event
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from tests.faults import attempts
from tests.faults.injection import process
from tests.faults.worker import request
from tests.model.seeds import seed
from tests.spark.pipelines.hidden_columns import HiddenColumns, hashed
from tests.spark.pipelines.salesforce.pipeline import TABLES, SalesforcePipeline, Writer, salesforce_pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SEED = seed()


def change_many(org: SalesforceOrg, table: str, text: str) -> None:
    """A transaction with an overflow."""
    with org.transaction() as tx:
        for one in sorted(org.ledger.state(table)):
            tx.update(table, one, {"Phone": text, "BillingStreet": text, "ShippingCity": text})


def published(crm: SalesforcePipeline) -> list[str]:
    replicator = crm.replicator()
    rows = replicator.state.tables("crm").values()
    return sorted(row.table for row in select_cut_tables(rows, replicator.log.sealed()))


def verified(crm: SalesforcePipeline, key: str) -> dict[str, TableResult]:
    request(crm.replicator(), CommandKind.VERIFY, {"tables": crm.tables, "key": key})
    return crm.results(crm.run(), "verify")


@pytest.mark.nightly
def test_case_15_copies_follow_random_transactions_and_are_published_when_replay_is_past_them(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg
) -> None:
    crm = copied(*TABLES)
    assert crm.differences() == [] and published(crm) == []
    writer.transact(12)
    dag_run = crm.run_successfully()
    assert dag_run.states["merge"] == "success" and published(crm) == []
    assert crm.differences() == [], f"CDC_SEED={SEED}"
    writer.transact(12)
    crm.run_successfully()
    assert crm.differences() == [], f"CDC_SEED={SEED}"
    assert published(crm) == sorted(TABLES)

    before = org.requests
    idle = crm.run_successfully()
    assert set(idle.states) == {"open_window", "close_window"}, "no changes: no JVM"
    assert org.requests - before <= 4, "however many objects there are"


def test_case_08_overflows_reconcile_their_table_once_while_the_others_continue(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg
) -> None:
    """Windows are landed until nothing is left: two overflows, one copy."""
    crm = copied("Account", "Contact")
    before = {table: crm.control(table) for table in crm.tables}
    (contact, *_) = sorted(org.ledger.state("Contact"))
    for text in ("first", "second"):
        with org.transaction() as tx:
            tx.update("Contact", contact, {"FirstName": text})
        change_many(org, "Account", text)
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "behind"})
    dag_run = crm.run_successfully()
    assert [task for task in dag_run.states if task.startswith("reconcile")] == [
        "reconcile.pause_stream", "reconcile.resync", "reconcile.replay", "reconcile.resume_stream",
    ]  # fmt: skip
    log = crm.replicator().log
    holes = [(number, hole) for number in range(1, log.sealed() + 1) for hole in log.manifest(number).holes]
    assert [(hole.kind, hole.table) for _, hole in holes] == [("overflow", "Account")] * 2
    assert [number for number, _ in holes] == [log.sealed() - 2, log.sealed() - 1], "each ends its window"
    assert all(hole.position == log.manifest(number).hi for number, hole in holes)
    assert crm.control("Contact").window >= log.sealed() - 1 and crm.results(dag_run, "merge").keys() == {"Contact"}
    assert crm.control("Contact").fence == before["Contact"].fence, "its stream was never stopped"
    assert crm.control("Account").state.name is TableState.REPLICATING
    assert crm.control("Account").fence > before["Account"].fence
    assert crm.differences() == []
    writer.transact(8)
    crm.run_until_idle()
    assert crm.differences() == [], f"CDC_SEED={SEED}"


@pytest.mark.nightly
def test_case_16_changes_that_are_delivered_again_later_do_not_revert_rows(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg
) -> None:
    crm = copied("Account")
    (one, *_) = sorted(org.ledger.state("Account"))
    events = []
    for phone in ("older", "newer"):
        with org.transaction() as tx:
            tx.update("Account", one, {"Phone": phone})
        events.append(org.bus._entries[-1].event)
        crm.run_successfully()
    org.bus.publish([events[0]])
    crm.run_successfully()
    log = crm.replicator().log
    assert crm.rows("Account")[one]["Phone"] == "newer"
    assert log.manifest(log.sealed()).ignored == 1


def test_case_16_a_repetition_of_a_change_from_before_the_copy_does_not_revert_its_row(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg
) -> None:
    """No window has the original."""
    one, restored = sorted(org.ledger.state("Account"))[:2]
    with org.transaction() as tx:
        tx.update("Account", one, {"Phone": "older"})
    with org.transaction() as tx:
        tx.delete("Account", restored)
    repeated = [entry.event for entry in org.bus._entries if entry.event and entry.entity == "Account"]
    with org.transaction() as tx:
        tx.update("Account", one, {"Phone": "newer"})
        tx.undelete("Account", restored)
    crm = copied("Account")
    org.bus.publish(repeated)
    crm.run_until_idle()
    assert crm.rows("Account")[one]["Phone"] == "newer"
    assert crm.differences() == []


@pytest.mark.parametrize("lost", ["reset", pytest.param("moved", marks=pytest.mark.nightly)])
def test_case_26_a_lost_position_reconciles_every_table(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg, lost: str
) -> None:
    tables = ("Account", "Contact") if lost == "reset" else ("Invoice__c",)
    crm = copied(*tables)
    before = {table: crm.control(table) for table in crm.tables}
    writer.transact(8)
    org.bus.reset() if lost == "reset" else org.migrate()
    dag_run = crm.run_successfully()
    assert {one.outcome for one in crm.results(dag_run, "reconcile.resync").values()} == {"done"}
    assert all(crm.control(table).floor > before[table].floor for table in tables), (
        "the new order keys are above the old ones"
    )
    assert crm.differences() == []
    writer.transact(8)
    crm.run_successfully()
    assert crm.differences() == [], f"CDC_SEED={SEED}"


def test_case_26_with_manual_reconcile_a_lost_position_blocks_the_tables_with_a_remedy(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg
) -> None:
    crm = copied("Account")
    crm.with_source(reconcile=Reconcile.MANUAL)
    before = crm.rows("Account")
    writer.transact(8)
    org.bus.reset()
    dag_run = crm.run()
    assert not dag_run.green and any("airflow cdc resync" in line for line in dag_run.problems), dag_run.problems
    assert crm.rows("Account") == before
    request(crm.replicator(), CommandKind.RESYNC, {"tables": crm.tables, "key": "again"})
    crm.run_until_idle()
    assert crm.differences() == []


@pytest.mark.nightly
def test_case_09_a_run_that_is_killed_in_its_window_reads_it_again(
    copied: Callable[..., SalesforcePipeline], writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position is that before the window until the window is sealed."""
    crm = copied("Account")
    writer.transact(5)
    token = tmp_path / "token"
    token.touch()
    sealed = crm.replicator().log.sealed()
    killed = {ARMED: "seal.before=kill9", TOKEN: str(token)}
    tasks: list[str] = []
    # A separate driver until it is killed; the next try runs in this process.
    armed = SimpleNamespace(get=lambda: killed if tasks[-1] == "extract" and token.exists() else None)
    monkeypatch.setattr(attempts, "armed", armed)
    crm.run_successfully(between=tasks.append)
    assert not token.exists(), "it was killed"
    assert crm.replicator().log.sealed() == sealed + 1
    assert crm.differences() == [], f"CDC_SEED={SEED}"


BRANCH = {
    "reconcile.pause_stream": ["control.before", "resync.fenced"],
    "reconcile.resync": ["copy.anchored", "copy.before_commit", "copy.after_commit"],
    "reconcile.replay": ["result.before", "result.after"],
    "reconcile.resume_stream": ["resume.before", "resume.after"],
}


@pytest.mark.nightly
def test_case_08_a_reconcile_that_is_killed_in_every_step_has_the_same_result(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is killed once, at one of its failpoints; the next try continues."""
    crm = copied("Account")
    change_many(org, "Account", "overflow")
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "behind"})
    points = {task: random.Random(f"{SEED} {task}").choice(known) for task, known in BRANCH.items()}
    tokens = {task: tmp_path / task for task in points}
    for token in tokens.values():
        token.touch()
    tasks: list[str] = []

    def killed() -> dict[str, str] | None:
        task = tasks[-1]
        if task not in points or not tokens[task].exists():
            return None
        return {ARMED: f"{points[task]}=kill9", TOKEN: str(tokens[task])}

    def before(task: str) -> None:
        tasks.append(task)
        if task in ("reconcile.pause_stream", "reconcile.resume_stream"):
            process(crm, task, dag_run.run_id, {}, killed() or {}).wait(60)  # type: ignore[arg-type]

    monkeypatch.setattr(attempts, "armed", SimpleNamespace(get=killed))
    dag_run = crm.dag_run(between=before)
    assert crm.execute(dag_run).green, (dag_run.states, dag_run.problems)
    assert [task for task, token in tokens.items() if token.exists()] == [], f"not killed, of {points}"
    assert crm.control("Account").state.name is TableState.REPLICATING
    crm.run_until_idle()
    assert crm.differences() == [], f"CDC_SEED={SEED}, {points}"


def test_case_58_an_undecodable_event_stops_its_table_and_no_other(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = copied("Account", "Contact")
    one, contact = min(org.ledger.state("Account")), min(org.ledger.state("Contact"))
    whole = org.bus.publish

    def cut_short(events: Iterable[Event]) -> None:
        whole(replace(event, payload=event.payload[:-1]) for event in events)

    with monkeypatch.context() as patched, org.transaction() as tx:
        patched.setattr(org.bus, "publish", cut_short)
        tx.update("Account", one, {"Phone": "cut short"})
    with org.transaction() as tx:
        tx.update("Contact", contact, {"MailingCountry": "Italy"})
    before = crm.rows("Account")
    dag_run = crm.run()
    assert any("QUA001" in line and "do not match their schema" in line for line in dag_run.problems), dag_run.problems
    assert crm.rows("Account") == before and crm.rows("Contact")[contact]["MailingCountry"] == "Italy"
    request(crm.replicator(), CommandKind.RESYNC, {"tables": ["Account"], "key": "again"})
    crm.run_until_idle()
    assert crm.differences() == []


@pytest.mark.nightly
def test_verify_compares_the_columns_of_events_and_reports_that_it_is_not_exact(
    copied: Callable[..., SalesforcePipeline], writer: Writer, org: SalesforceOrg, spark: SparkSession
) -> None:
    crm = copied("Account")
    writer.transact(8)
    result = verified(crm, "first")["Account"]
    assert result.detail["identical"] and result.detail["inexact"], result
    assert "Phone" in result.detail["columns"] and "SystemModstamp" not in result.detail["columns"]
    one = min(org.ledger.state("Account"))
    location = crm.replicator().targets.only.locate(crm.target("Account"))
    spark.sql(f"UPDATE delta.`{location}` SET Phone = 'somebody else' WHERE Id = '{one}'")
    result = verified(crm, "second")["Account"]
    assert result.detail["differences"] == [one] and not result.detail["columns"]["Phone"]


def test_a_copy_with_missing_rows_is_not_committed(
    org: SalesforceOrg, writer: Writer, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server counts the rows of a query; a page that is missing from its list is detected."""
    crm = salesforce_pipeline(org, tmp_path, spark, "Account")
    org.bulk.page_rows = 15
    pages = bulk.Bulk._pages
    monkeypatch.setattr(bulk.Bulk, "_pages", lambda self, job: list(pages(self, job))[1:])
    dag_run = crm.run()
    assert any("CPY005" in line for line in dag_run.problems), dag_run.problems
    monkeypatch.undo()
    crm.run_until_idle()
    assert crm.differences() == []


def test_an_error_of_a_page_is_reported_with_the_message_of_the_reader(
    org: SalesforceOrg, writer: Writer, tmp_path: Path, spark: SparkSession
) -> None:
    crm = salesforce_pipeline(org, tmp_path, spark, "Account")
    org.faults.http.append(HttpFault("GET .*/results", 403, "API_DISABLED_FOR_ORG", "no", times=9))
    dag_run = crm.run()
    assert any("SRC010" in line and "the API is switched off" in line for line in dag_run.problems), dag_run.problems


@pytest.mark.nightly
def test_case_56_the_channel_is_left_to_the_run_that_holds_it(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg, writer: Writer
) -> None:
    crm = copied("Account")
    writer.transact(5)
    state, sealed = crm.replicator().state, crm.replicator().log.sealed()
    assert state.acquire("crm", Lane.STREAM, "another", 60)
    beside = crm.run_successfully()
    assert beside.states.keys() == {"open_window", "close_window"}
    assert crm.replicator().log.sealed() == sealed
    state.release("crm", Lane.STREAM, "another")
    crm.run_until_idle()
    assert crm.differences() == []


@pytest.mark.nightly
def test_hidden_columns_follow_partial_events_and_fetched_rows(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = copied("Account")
    hidden = HiddenColumns(
        crm,
        org.ledger.state,
        lambda row: {"Id": row["Id"], "Title": hashed(row["Name"]), "Description": hashed(row["Description"])},
        key="Id",
        clear="secret",
    )
    hidden.hide(Columns(hash=("Name", "Description"), rename={"Name": "Title"}), monkeypatch)
    one, other = sorted(org.ledger.state("Account"))[:2]
    with org.transaction() as tx:
        tx.update("Account", one, {"Name": "secret name"})
    with org.transaction() as tx:
        tx.update("Account", other, {"Description": "secret " * 99})
    crm.run_successfully()
    crm.run_until_idle()
    assert (hidden.differences(), hidden.clear_windows()) == ([], [])


@pytest.mark.nightly
def test_the_id_cannot_be_hashed_because_rows_are_fetched_by_it(
    copied: Callable[..., SalesforcePipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = copied("Account")
    hidden = HiddenColumns(crm, lambda _: {}, lambda row: row, key="Id", clear="")
    with pytest.raises(AssertionError, match="SRC131"):
        hidden.hide(Columns(hash=("Id",)), monkeypatch)
