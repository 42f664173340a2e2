"""An org with faults, in copies and in windows. The copies must equal its ledger.

Runs may fail meanwhile, as a task does that used all its tries: the next run continues.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg, fields
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault, HttpFault, RpcFault
from tests.faults.worker import request
from tests.model.seeds import seed
from tests.spark.pipelines.salesforce.pipeline import SalesforcePipeline, Writer, salesforce_pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SEED = seed()
TABLES = ("Account", "Invoice__c")
MOST_RUNS = 12

Fault = Callable[[SalesforceOrg], object]


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    """Jobs that were stopped continue after a while."""
    over = threading.Event()
    with SalesforceOrg(keepalive_s=0.05) as org:

        def release() -> None:
            while not over.wait(2):
                org.bulk.release()

        releasing = threading.Thread(target=release)
        releasing.start()
        yield org
        over.set()
        releasing.join()


@pytest.fixture
def writer(org: SalesforceOrg) -> Writer:
    writer = Writer(org, f"{SEED}")
    writer.fill(40)
    return writer


@pytest.fixture
def crm(org: SalesforceOrg, writer: Writer, tmp_path: Path, spark: SparkSession) -> SalesforcePipeline:
    return salesforce_pipeline(org, tmp_path, spark, *TABLES)


def run_despite_faults(crm: SalesforcePipeline) -> list[str]:
    """The messages of the runs."""
    problems: list[str] = []
    for _ in range(MOST_RUNS):
        dag_run = crm.run()
        problems += dag_run.problems
        if dag_run.green and set(dag_run.states) <= {"open_window", "close_window"}:
            return problems
    raise AssertionError(f"runs find work without end: {problems}")


def slow_job(org: SalesforceOrg) -> None:
    """It reads ten records, waits, and continues. Its remaining records contain the commits of that time."""
    org.bulk.piece_rows = 10
    org.faults.bulk.append(BulkFault("InProgress", hold_after_rows=10))


def http(match: str, status: int, code: str = "UNKNOWN_EXCEPTION", times: int = 1) -> Fault:
    return lambda org: org.faults.http.append(HttpFault(match, status, code, times=times, retry_after=0))


def rpc(method: str, code: str = "", status: str = "UNAVAILABLE", **more: int) -> Fault:
    return lambda org: org.faults.rpc.append(RpcFault(method, code, status, **more))


IN_A_COPY: dict[str, Fault] = {
    "a job that fails": lambda org: org.faults.bulk.append(BulkFault()),
    "a job that is slow": slow_job,
    "pages cut short": lambda org: vars(org.faults).update(truncate_csv=4),
    "a server that is down": http("results|resultPages", 503),
    "too many at once": http("POST .*jobs/query", 429, "REQUEST_LIMIT_EXCEEDED", times=2),
    "no requests left today": http("POST .*jobs/query", 403, "REQUEST_LIMIT_EXCEEDED", times=2),
    "tokens that end": lambda org: vars(org.faults).update(expire_tokens_after=3),
}

IN_A_WINDOW: dict[str, Fault] = {
    "a stream that drops": rpc("Subscribe", after_events=3),
    "a token that ends in mid-stream": rpc("Subscribe", "service.auth.error", "UNAUTHENTICATED", after_events=2),
    "no events left today": rpc("Subscribe", "subscription.limit.exceeded", "RESOURCE_EXHAUSTED", times=2),
    "a schema that is not to be had": rpc("GetSchema", "schema.api.unavailable"),
    "a server that is down": http("GET", 503, times=3),
    "no requests left today": http("GET", 403, "REQUEST_LIMIT_EXCEEDED", times=2),
    "tokens that end": lambda org: vars(org.faults).update(expire_tokens_after=1),
    "a field more": lambda org: org.change_field("Account", fields.text(f"More{org.requests}__c", 40)),
}


@pytest.mark.nightly
def test_copies_are_complete_after_any_fault_during_their_read(
    org: SalesforceOrg, writer: Writer, crm: SalesforcePipeline
) -> None:
    """First copies and later ones; each fault hits one of them, with transactions around it."""
    kinds = sorted(IN_A_COPY)
    random.Random(SEED).shuffle(kinds)
    hits = 0
    for number, some in enumerate((kinds[:3], kinds[3:])):
        if number:
            request(crm.replicator(), CommandKind.RESYNC, {"tables": list(TABLES), "key": f"again {number}"})
        for kind in some:
            IN_A_COPY[kind](org)
        writer.transact(3)
        problems = run_despite_faults(crm)
        assert org.faults.hits >= hits + len(some), (some, problems)
        hits = org.faults.hits
        org.faults.clear()
        assert crm.differences() == [], f"CDC_SEED={SEED}, {some}, {problems}"


@pytest.mark.nightly
def test_windows_lose_and_duplicate_nothing_after_any_fault_during_their_read(
    org: SalesforceOrg, writer: Writer, crm: SalesforcePipeline
) -> None:
    crm.run_successfully()
    kinds = sorted(IN_A_WINDOW)
    random.Random(SEED).shuffle(kinds)
    for some in (kinds[:3], kinds[3:6], kinds[6:]):
        writer.transact(4)
        for kind in some:
            IN_A_WINDOW[kind](org)
        writer.transact(4)
        with org.transaction() as tx:
            tx.update("Account", min(org.ledger.state("Account")), {"Phone": some[0]})
        problems = run_despite_faults(crm)
        org.faults.clear()
        assert crm.differences() == [], f"CDC_SEED={SEED}, {some}, {problems}"
