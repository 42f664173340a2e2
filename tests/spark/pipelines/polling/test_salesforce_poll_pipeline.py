"""Salesforce objects that are polled, end to end. The copies must equal the ledger of the org."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.sources.polling.pages import Query, Row
from airflow_cdc_provider.connectors.sources.salesforce.values import from_json
from airflow_cdc_provider.connectors.sources.salesforce_poll import reading
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import PolledObject
from airflow_cdc_provider.connectors.sources.salesforce_poll.source import SalesforcePollSource
from airflow_cdc_provider.control.reconcile import RESYNC
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import StepResult, WindowResult
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.users import Access
from spark_jobs import extract, verify
from spark_jobs.runtime.job import Job
from tests.connectors.salesforce_copy import plain
from tests.model.seeds import seed
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition
from tests.spark.pipelines.salesforce.pipeline import Writer

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SEED = seed()
TABLES = ("Account", "Invoice__c")
LATER_S = 400
DAY_S = 86_400


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


class PolledSalesforce(PollingPipeline):
    def rows(self, table: str) -> Rows:
        """Values as in canonical JSON."""
        return {key: {name: plain(value) for name, value in row.items()} for key, row in super().rows(table).items()}


@pytest.fixture
def crm(org: SalesforceOrg, tmp_path: Path, spark: SparkSession) -> PolledSalesforce:
    return polled(org, tmp_path, spark, TABLES)


def polled(org: SalesforceOrg, tmp_path: Path, spark: SparkSession, objects: Sequence[str]) -> PolledSalesforce:
    """A replicator of these objects after its first copies."""
    writer = Writer(org, SEED)
    writer.fill(30)
    extra = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    rules = [TableRule(table) for table in objects]

    def truth(table: str) -> Rows:
        source = made.replicator().source
        assert isinstance(source, SalesforcePollSource)
        found = source._describe(table)
        columns = [c for c in found.schema.columns if c.name not in found.snapshot_only - {"SystemModstamp"}]
        return {
            one: {c.name: json.loads(from_json(c.type)(row[c.name])) for c in columns}
            for one, row in org.ledger.state(table).items()
        }

    plan = definition(tmp_path, "salesforce_poll", {"objects": list(objects)}, rules)
    made = PolledSalesforce(tmp_path, spark, plan, ConnectionInfo("crm", extra=extra), "Id", truth)
    made.run_successfully()
    assert made.differences() == []
    return made


def test_copies_follow_random_transactions_with_deletes(crm: PolledSalesforce, org: SalesforceOrg) -> None:
    writer = Writer(org, f"{SEED} again")
    for _ in range(3):
        writer.transact(12)
        org.clock.advance(LATER_S)
        crm.run_successfully()
        assert crm.differences() == [], f"CDC_SEED={SEED}"
    org.clock.advance(1800)
    crm.run_successfully()
    org.clock.advance(60)
    before = org.requests
    assert set(crm.run_successfully().states) == {"open_window", "close_window"}, "no changes: no JVM"
    assert org.requests - before <= 8


def test_an_object_without_timestamps_is_copied_once_in_every_run(
    org: SalesforceOrg, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its window does not make the stream go on: it would have the same hole again."""
    (user,) = sorted(org.ledger.state("User"))[:1]
    org.load("UserPreference", [{"UserId": user, "Preference": "colour", "Value": "red"}])
    land_window, windows = extract.land_window, list[int]()

    def counted(job: Job) -> tuple[Manifest, WindowResult]:
        windows.append(job.step.window)
        assert len(windows) <= 4, "windows without end"
        return land_window(job)

    monkeypatch.setattr(extract, "land_window", counted)
    crm = polled(org, tmp_path, spark, ["Account", "UserPreference"])
    for value in ("green", "blue"):
        org.clock.advance(LATER_S)
        org.load("UserPreference", [{"UserId": user, "Preference": "colour", "Value": value}])
        (account, *_) = sorted(org.ledger.state("Account"))
        with org.transaction() as tx:
            tx.update("Account", account, {"Phone": value})
        org.clock.advance(LATER_S)
        windows.clear()
        run = crm.run_successfully()
        assert crm.differences() == []
        assert len(windows) == 1 and crm.results(run, RESYNC).keys() == {"UserPreference"}


def test_an_object_that_cannot_be_read_now_fails_alone_and_loses_nothing(
    crm: PolledSalesforce, org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest_rows, writer = reading.rest_rows, Writer(org, f"{SEED} later")

    def without_invoices(entity: PolledObject, query: Query) -> list[Row]:
        if entity.table == "Invoice__c":
            raise SourceUnavailable.of("SRC057", "records disappeared while they were read")
        return rest_rows(entity, query)

    with monkeypatch.context() as patched:
        patched.setattr(reading, "rest_rows", without_invoices)
        (account, *_), (invoice, *_) = (sorted(org.ledger.state(table)) for table in TABLES)
        for changed in ({"Account": account, "Invoice__c": invoice}, {"Invoice__c": invoice}):
            with org.transaction() as tx:
                for table, one in changed.items():
                    tx.update(table, one, {"Phone": "77"} if table == "Account" else {"Amount__c": 77})
            org.clock.advance(3600)
            run = crm.run()
            states = {table: row.state for table, row in crm.replicator().state.tables("polled").items()}
            assert states == {"Account": TableState.REPLICATING, "Invoice__c": TableState.FAILING}, run.problems
            assert [problem.split(" ")[0] for problem in run.problems] == ["RUN002"], run.problems
    assert crm.rows("Account")[account]["Phone"] == "77"
    writer.transact(3)
    org.clock.advance(LATER_S)
    crm.run_successfully()
    assert crm.differences() == []


def test_an_object_whose_timestamp_column_is_hidden_is_blocked_alone_until_it_is_seen_again(
    crm: PolledSalesforce, org: SalesforceOrg
) -> None:
    crm.with_source(options={"timestamp_columns": {"Account": "LastModifiedDate"}})
    assert crm.results(crm.run_successfully(), RESYNC).keys() == {"Account"}, "another column than before"
    org.clock.advance(LATER_S)
    assert RESYNC not in crm.run_successfully().states
    accounts, invoices = (sorted(org.ledger.state(table)) for table in TABLES)
    for hidden, number in ((True, 7.0), (False, 8.0)):
        org.integration.hidden = {("Account", "LastModifiedDate")} if hidden else set()
        with org.transaction() as tx:
            tx.update("Account", accounts[0], {"Phone": f"{number}"})
            tx.update("Invoice__c", invoices[0], {"Amount__c": number})
        org.clock.advance(3600)
        run = crm.run()
        states = {table: row.state for table, row in crm.replicator().state.tables("polled").items()}
        expected = TableState.BLOCKED if hidden else TableState.REPLICATING
        assert states == {"Account": expected, "Invoice__c": TableState.REPLICATING}, run.problems
        assert crm.rows("Invoice__c")[invoices[0]]["Amount__c"] == f"{number:.2f}"
    assert crm.differences() == []


@pytest.mark.nightly
def test_a_comparison_that_meets_a_purged_list_of_deletes_leaves_every_row_to_the_stream(
    crm: PolledSalesforce, org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is purged between the stream and the comparison of one run."""
    compare, (invoice, *_) = verify.run, sorted(org.ledger.state("Invoice__c"))

    def after_purge(job: Job) -> StepResult:
        with org.transaction() as tx:
            tx.update("Invoice__c", invoice, {"Amount__c": 77})
        org.clock.advance(3600)
        org.delete_log_since = org.clock.second()
        return compare(job)

    with monkeypatch.context() as patched:
        patched.setattr(verify, "run", after_purge)
        crm.record_command(CommandKind.VERIFY, "Invoice__c")
        run = crm.run()
    assert [problem for problem in run.problems if "VER001" in problem], run.problems
    org.clock.advance(3600)
    for _ in range(3):
        crm.run_successfully()
        org.clock.advance(LATER_S)
    assert crm.differences() == []


@pytest.mark.nightly
def test_case_47_the_audit_finds_changes_that_no_poll_returns(crm: PolledSalesforce, org: SalesforceOrg) -> None:
    gone = sorted(org.ledger.state("Invoice__c"))[:3]
    with org.transaction() as tx:
        tx.delete("Invoice__c", *gone)
    with org.transaction() as tx:
        tx.purge("Invoice__c", *gone)
    org.store.table("Invoice__c").delete_log.clear()
    org.clock.advance(LATER_S)
    crm.run_successfully()
    assert crm.rows("Invoice__c").keys() >= set(gone)
    crm.with_source(options={"key_audit": float(DAY_S)})
    org.clock.advance(DAY_S)
    crm.run_successfully()
    assert crm.differences() == []
    org.clock.advance(LATER_S)
    crm.run_successfully()
    assert crm.differences() == []


@pytest.mark.nightly
@pytest.mark.parametrize("access", [Access.NONE, Access.OWN])
def test_case_50_a_permission_that_is_lost_between_runs_deletes_nothing(
    crm: PolledSalesforce, org: SalesforceOrg, access: Access
) -> None:
    before = crm.rows("Account")
    crm.with_source(options={"key_audit": float(DAY_S)})
    org.clock.advance(DAY_S)
    org.integration.access["Account"] = access
    crm.run()
    assert crm.rows("Account") == before
    del org.integration.access["Account"]
    for _ in range(3):
        org.clock.advance(LATER_S)
        crm.run()
    assert crm.differences() == []
