"""The connector against the sandbox org, which reads the protocols by itself; its ledger is the judge."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkNotSupported
from airflow_cdc_provider.connectors.sources.salesforce.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import read_over_rest
from airflow_cdc_provider.connectors.sources.salesforce.stream import read_stream
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from airflow_cdc_provider.sandbox.salesforce.channels import Member
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault, HttpFault, RpcFault
from airflow_cdc_provider.sandbox.salesforce.fields import text
from airflow_cdc_provider.sandbox.salesforce.users import Access
from tests.connectors.salesforce_copy import TABLES, TEXTS, Copy, Writer
from tests.model.seeds import histories, seed

pytestmark = pytest.mark.server

SEED = seed()


@pytest.fixture
def sandbox() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05) as org:
        yield org


@pytest.fixture
def copy(sandbox: SalesforceOrg) -> Copy:
    return Copy(sandbox)


@pytest.mark.parametrize("number", range(histories(6)))
def test_a_copy_that_follows_random_transactions_is_what_the_ledger_says(number: int) -> None:
    """Merged events, nested bitmaps, diffs, gaps, repeats, overflows; windows cut anywhere."""
    chance = random.Random(f"{SEED}-{number}")
    rules = Rules(overflow=chance.choice([12, 100_000]), merge=chance.random() < 0.8)
    with SalesforceOrg(keepalive_s=0.02, rules=rules) as sandbox:
        writer = Writer(sandbox, chance)
        sandbox.load("Account", [{"Name": f"A{n}", **writer.values("Account", 5)} for n in range(20)])
        sandbox.load("Invoice__c", [writer.values("Invoice__c", 6) for n in range(20)])
        copy = Copy(sandbox)
        for _ in range(10):
            writer.transact()  # the copy reads what the stream tells again
        copy.copy(*TABLES)
        for _ in range(3):
            for _ in range(chance.randint(0, 25)):
                writer.transact()
            copy.catch_up()
            assert copy.differences() == [], f"CDC_SEED={SEED}, history {number}"


def test_case_18_a_channel_that_adds_fields_tells_no_other_story(sandbox: SalesforceOrg) -> None:
    """Merged events come apart, several have one replay id, and values of now stand in events of then."""
    enriched = {"Account": ("Name", "Phone", "BillingAddress"), "Contact": ("LastName",), "Invoice__c": ("Terms__c",)}
    sandbox.channels.custom["More__chn"] = [Member(table, enriched=names) for table, names in enriched.items()]
    writer = Writer(sandbox, random.Random(SEED))
    copy = Copy(sandbox, "/data/More__chn")
    copy.copy(*TABLES)
    for _ in range(3):
        for _ in range(25):
            writer.transact()
        copy.catch_up()
        assert copy.differences() == [], f"CDC_SEED={SEED}"


def test_an_org_that_is_ready_has_no_problems(copy: Copy) -> None:
    assert find_problems(copy.org, [copy.task(table) for table in TABLES]) == []


def test_a_user_who_may_not_see_all_is_told_before_anything_is_read(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.integration.access["Invoice__c"] = Access.OWN
    found = find_problems(copy.org, [copy.task("Account"), copy.task("Invoice__c")])
    assert {(problem.code, problem.where) for problem in found} >= {("SRC055", "Invoice__c")}
    assert all(problem.where != "Account" for problem in found)


def test_what_no_event_tells_is_known_by_the_events_schema(copy: Copy) -> None:
    assert copy.unsent("Account") == {
        "SystemModstamp", "MasterRecordId", "IsPersonAccount", "LastActivityDate", "Age_Days__c",
    }  # fmt: skip
    assert copy.unsent("Invoice__c") == {"SystemModstamp", "Net__c"}


def test_case_42_and_43_a_bulk_copy_is_exact_to_the_last_character(sandbox: SalesforceOrg, copy: Copy) -> None:
    wild = [*TEXTS, "null", "x" * 100_000, '"', ",", "\t", "a\r\n\r\nb"]
    sandbox.load("Invoice__c", [{"Letter__c": one} for one in wild])
    copy.copy(*TABLES)
    assert copy.differences() == []


def test_case_33_tokens_that_end_in_the_middle_of_everything_are_renewed(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.load("Account", [{"Name": f"A{n}"} for n in range(100)])
    for requests in range(4):
        sandbox.faults.expire_tokens_after = requests
        copy.copy(*TABLES)
    assert copy.differences() == [] and sandbox.faults.hits >= 3


def test_pages_that_break_off_and_servers_that_fail_are_asked_again(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.load("Account", [{"Name": f"A{n}", "Description": "d" * 100} for n in range(500)])
    sandbox.faults.truncate_csv = 2
    sandbox.faults.http.append(HttpFault("resultPages", 503, times=1, retry_after=0))
    copy.copy(*TABLES)
    assert copy.differences() == [] and sandbox.faults.hits == 3


def test_a_bulk_job_that_fails_is_worth_another_try(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.faults.bulk.append(BulkFault())
    with pytest.raises(SourceUnavailable, match=r"SRC046.*InternalServerError"):
        copy.copy("Account")
    copy.copy(*TABLES)
    assert copy.differences() == []


def test_case_57_an_object_that_the_bulk_api_refuses_is_read_over_rest(sandbox: SalesforceOrg, copy: Copy) -> None:
    refused = [name for name in ("Attachment", "User", "Task") if _is_refused(copy, name)]
    for name in refused:
        schema = copy.describe(name).schema
        rows = [row for table in read_over_rest(copy.org.rest, schema) for row in table.to_pylist()]
        assert {row["Id"] for row in rows} == sandbox.ledger.state(name).keys()


def _is_refused(copy: Copy, name: str) -> bool:
    try:
        with copy.org.bulk.query(copy.describe(name).schema):
            return False
    except BulkNotSupported:
        return True


def test_a_stream_that_drops_and_a_token_that_ends_lose_and_double_nothing(sandbox: SalesforceOrg, copy: Copy) -> None:
    ids = sandbox.load("Account", [{"Name": f"A{n}"} for n in range(30)])
    copy.copy(*TABLES)
    for one in ids:
        with sandbox.transaction() as tx:
            tx.update("Account", one, {"Phone": one})
    sandbox.faults.rpc += [RpcFault("Subscribe", after_events=7), RpcFault("Subscribe", after_events=11)]
    sandbox.faults.rpc.append(RpcFault("Subscribe", "service.auth.error", "UNAUTHENTICATED", after_events=3))
    told = copy.catch_up()
    assert len(told) == 30 and copy.differences() == []


def test_case_26_and_27_after_a_move_of_the_org_no_position_is_taken_for_another(
    sandbox: SalesforceOrg, copy: Copy
) -> None:
    before = copy.org.identity(), copy.org.instance
    sandbox.migrate()
    del copy.org.instance
    assert copy.org.identity() == before[0] and copy.org.instance != before[1]
    with pytest.raises(PositionLost, match="SRC013"):
        copy.drain()


def test_case_30_an_allocation_that_is_used_up_leaves_the_position_where_it_was(
    sandbox: SalesforceOrg, copy: Copy
) -> None:
    sandbox.faults.rpc.append(RpcFault("Subscribe", "subscription.limit.exceeded", "RESOURCE_EXHAUSTED"))
    before = dict(copy.position)
    with pytest.raises(SourceUnavailable, match="SRC041"):
        copy.drain()
    assert copy.position == before


def test_case_52_a_field_that_comes_in_mid_stream_is_told_from_its_first_value_on(
    sandbox: SalesforceOrg, copy: Copy
) -> None:
    (one,) = sandbox.load("Account", [{"Name": "A"}])
    copy.copy(*TABLES)
    with sandbox.transaction() as tx:
        tx.update("Account", one, {"Phone": "1"})
    sandbox.change_field("Account", text("Tier__c", 20))
    with sandbox.transaction() as tx:
        tx.update("Account", one, {"Tier__c": "gold"})
    items = copy.drain()
    schemas = [item for item in items if isinstance(item, TableSchema)]
    assert "Tier__c" in schemas[-1].names
    assert json.loads([r for r in items if isinstance(r, ChangeRecord)][-1].after or "")["Tier__c"] == "gold"


def test_case_06_an_incompatible_conversion_is_an_overflow_of_its_table(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.load("Invoice__c", [{"Issued__c": "2026-03-01"}])
    copy.copy(*TABLES)
    sandbox.convert_field("Invoice__c", text("Issued__c", 20))
    (told,) = copy.catch_up()
    assert (told.table, told.op) == ("Invoice__c", "overflow")
    assert copy.differences() == []


def test_memory_stays_flat_over_a_transaction_of_many_changes(sandbox: SalesforceOrg, copy: Copy) -> None:
    """Records are given out as they come; only the reader decides what it keeps."""
    ids = sandbox.load("Account", [{"Name": f"A{n}"} for n in range(3000)])
    with sandbox.transaction(coalesce=False) as tx:
        for one in ids:
            tx.update("Account", one, {"Phone": one})
    with copy.org.pubsub.connected() as pubsub:
        tasks = [copy.task("Account")]
        items = read_stream(pubsub, copy.org.rest, copy.org.options, copy.position, tasks, 1)
        first = next(item for item in items if isinstance(item, ChangeRecord))
        assert sandbox.bus.delivered <= 200, "most of the transaction has not been asked for yet"
        rest = list(items)
    assert first.tx_id == rest[0].tx_id  # type: ignore[union-attr]
    assert sum(isinstance(item, Boundary) for item in rest) == 1
