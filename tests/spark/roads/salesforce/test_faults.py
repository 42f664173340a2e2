"""An org that does not answer as it should, in copies and in windows. Its ledger is the judge.

Runs may fail meanwhile, as a task that used up its tries does: the next one goes on.
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
from tests.spark.roads.salesforce.scene import Crm, Writer, scene

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SEED = seed()
TABLES = ("Account", "Invoice__c")
MOST_RUNS = 12

Fault = Callable[[SalesforceOrg], object]


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    """Jobs that are held go on after a while."""
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
def crm(org: SalesforceOrg, writer: Writer, tmp_path: Path, spark: SparkSession) -> Crm:
    return scene(org, tmp_path, spark, *TABLES)


def run_until_nothing_is_left(crm: Crm) -> list[str]:
    """What the runs said."""
    said: list[str] = []
    for _ in range(MOST_RUNS):
        road = crm.run()
        said += road.problems
        if road.green and set(road.states) <= {"open_window", "close_window"}:
            return said
    raise AssertionError(f"there is no end of it: {said}")


def slow_job(org: SalesforceOrg) -> None:
    """It reads ten records, waits, and reads on. Commits meanwhile are seen by the rest of it."""
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


def test_copies_are_whole_whatever_goes_wrong_while_they_are_read(org: SalesforceOrg, writer: Writer, crm: Crm) -> None:
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
        said = run_until_nothing_is_left(crm)
        assert org.faults.hits >= hits + len(some), (some, said)
        hits = org.faults.hits
        org.faults.clear()
        assert crm.differences() == [], f"CDC_SEED={SEED}, {some}, {said}"


def test_windows_lose_and_double_nothing_whatever_goes_wrong_while_they_are_read(
    org: SalesforceOrg, writer: Writer, crm: Crm
) -> None:
    crm.green()
    kinds = sorted(IN_A_WINDOW)
    random.Random(SEED).shuffle(kinds)
    for some in (kinds[:3], kinds[3:6], kinds[6:]):
        writer.transact(4)
        for kind in some:
            IN_A_WINDOW[kind](org)
        writer.transact(4)
        with org.transaction() as tx:
            tx.update("Account", min(org.ledger.state("Account")), {"Phone": some[0]})
        said = run_until_nothing_is_left(crm)
        org.faults.clear()
        assert crm.differences() == [], f"CDC_SEED={SEED}, {some}, {said}"
