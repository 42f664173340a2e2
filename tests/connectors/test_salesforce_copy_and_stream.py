"""The connector against the sandbox org, a separate implementation of the protocols; its ledger has the expected
rows."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.salesforce.bulk import BulkNotSupported
from airflow_cdc_provider.connectors.sources.salesforce.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce.copy import open_splits, read_split
from airflow_cdc_provider.connectors.sources.salesforce.query import existing
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import read_over_rest
from airflow_cdc_provider.connectors.sources.salesforce.stream import read_stream
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from airflow_cdc_provider.sandbox.salesforce.channels import Member
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault, HttpFault, RpcFault
from airflow_cdc_provider.sandbox.salesforce.fields import double, text
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
def test_a_copy_that_follows_random_transactions_equals_the_ledger(number: int) -> None:
    """Merged events, nested bitmaps, diffs, gaps, duplicates, overflows; windows cut anywhere."""
    chance = random.Random(f"{SEED}-{number}")
    rules = Rules(overflow=chance.choice([12, 100_000]), merge=chance.random() < 0.8)
    with SalesforceOrg(keepalive_s=0.02, rules=rules) as sandbox:
        writer = Writer(sandbox, chance)
        sandbox.load("Account", [{"Name": f"A{n}", **writer.values("Account", 5)} for n in range(20)])
        sandbox.load("Invoice__c", [writer.values("Invoice__c", 6) for n in range(20)])
        copy = Copy(sandbox)
        for _ in range(10):
            writer.transact()  # the copy contains changes that the stream sends again
        copy.copy(*TABLES)
        for _ in range(3):
            for _ in range(chance.randint(0, 25)):
                writer.transact()
            copy.catch_up()
            assert copy.differences() == [], f"CDC_SEED={SEED}, history {number}"


def test_case_18_a_channel_with_enriched_fields_gives_the_same_copy(sandbox: SalesforceOrg) -> None:
    """Events are split per record, several have one replay id, and enriched fields have present values in older
    events."""
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


def test_a_user_without_all_rights_is_refused_before_reading(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.integration.access["Invoice__c"] = Access.OWN
    found = find_problems(copy.org, [copy.task("Account"), copy.task("Invoice__c")])
    assert {(problem.code, problem.where) for problem in found} >= {("SRC055", "Invoice__c")}
    assert all(problem.where != "Account" for problem in found)


def test_columns_missing_from_events_are_found_in_the_schema_of_the_event(copy: Copy) -> None:
    assert copy.unsent("Account") == {
        "SystemModstamp", "MasterRecordId", "IsPersonAccount", "LastActivityDate", "Age_Days__c",
    }  # fmt: skip
    assert copy.unsent("Invoice__c") == {"SystemModstamp", "Net__c"}


def test_case_42_and_43_a_bulk_copy_is_exact_to_the_last_character(sandbox: SalesforceOrg, copy: Copy) -> None:
    wild = [*TEXTS, "null", "x" * 100_000, '"', ",", "\t", "a\r\n\r\nb"]
    sandbox.load("Invoice__c", [{"Letter__c": one} for one in wild])
    copy.copy(*TABLES)
    assert copy.differences() == []


def test_a_copy_rounds_no_value_whose_field_was_changed_since_it_began(sandbox: SalesforceOrg, copy: Copy) -> None:
    number = double("A__c", 8, 0)
    sandbox.change_field("Invoice__c", number)
    described = copy.describe("Invoice__c")
    schema = described.schema
    more_digits = replace(number, precision=10, scale=2)
    sandbox.retype_field("Invoice__c", more_digits)
    sandbox.load("Invoice__c", [{"A__c": 40.25}])

    def amounts() -> list[Decimal]:
        with open_splits(copy.org, schema, described) as (read, _):
            return [
                row
                for split in read.splits
                for rows in read_split(copy.org, split, schema)
                for row in rows["A__c"].to_pylist()
            ]

    for _ in ("bulk", "rest"):
        sandbox.retype_field("Invoice__c", more_digits)
        with pytest.raises(SourceUnavailable, match="SRC056"):
            amounts()
        sandbox.retype_field("Invoice__c", number)
        assert amounts() == [Decimal(40)], "Salesforce does not show further digits either"
        sandbox.store.refuse_bulk("Invoice__c")


@pytest.mark.parametrize("over_rest", [False, True])
def test_a_copy_rounds_no_changed_field_because_another_one_has_hidden_digits(
    sandbox: SalesforceOrg, copy: Copy, over_rest: bool
) -> None:
    hidden, changed = double("A__c", 8, 0), double("B__c", 8, 0)
    for field in (hidden, changed):
        sandbox.change_field("Invoice__c", field)
    described = copy.describe("Invoice__c")
    sandbox.retype_field("Invoice__c", replace(hidden, precision=10, scale=2))
    sandbox.retype_field("Invoice__c", replace(changed, precision=10, scale=2))
    sandbox.load("Invoice__c", [{"A__c": 40.25, "B__c": 7.25}])
    sandbox.retype_field("Invoice__c", hidden)
    if over_rest:
        sandbox.store.refuse_bulk("Invoice__c")

    def rows() -> list[dict[str, Any]]:
        with open_splits(copy.org, described.schema, described) as (read, _):
            read_rows = (read_split(copy.org, split, described.schema) for split in read.splits)
            return [row for tables in read_rows for table in tables for row in table.to_pylist()]

    with pytest.raises(SourceUnavailable, match=r"SRC056.*B__c"):
        rows()
    sandbox.retype_field("Invoice__c", changed)
    assert [(row["A__c"], row["B__c"]) for row in rows()] == [(Decimal(40), Decimal(7))]


def test_a_page_with_hidden_digits_is_read_once(
    sandbox: SalesforceOrg, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = double("A__c", 8, 0)
    sandbox.change_field("Invoice__c", replace(number, precision=10, scale=2))
    sandbox.load("Invoice__c", [{"A__c": 40.25}])
    sandbox.retype_field("Invoice__c", number)
    described, requests = copy.describe("Invoice__c"), []
    send = copy.org.bulk._http.send

    def counted(method: str, path: str, **options: Any) -> Any:
        requests.append(path)
        return send(method, path, **options)

    with open_splits(copy.org, described.schema, described) as (read, _):
        monkeypatch.setattr(copy.org.bulk._http, "send", counted)
        (split,) = read.splits
        assert sum(table.num_rows for table in read_split(copy.org, split, described.schema)) == 1
        assert requests.count(json.loads(split)["page"]) == 1


def test_case_33_tokens_that_expire_at_any_time_are_renewed(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.load("Account", [{"Name": f"A{n}"} for n in range(100)])
    for requests in range(4):
        sandbox.faults.expire_tokens_after = requests
        copy.copy(*TABLES)
    assert copy.differences() == [] and sandbox.faults.hits >= 3


def test_truncated_pages_and_failing_servers_are_retried(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.load("Account", [{"Name": f"A{n}", "Description": "d" * 100} for n in range(500)])
    sandbox.faults.truncate_csv = 2
    sandbox.faults.http.append(HttpFault("resultPages", 503, times=1, retry_after=0))
    copy.copy(*TABLES)
    assert copy.differences() == [] and sandbox.faults.hits == 3


def test_a_failed_bulk_job_can_be_retried(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.faults.bulk.append(BulkFault())
    with pytest.raises(SourceUnavailable, match=r"SRC046.*InternalServerError"):
        copy.copy("Account")
    copy.copy(*TABLES)
    assert copy.differences() == []


def test_case_57_an_object_that_the_bulk_api_refuses_is_read_over_rest(sandbox: SalesforceOrg, copy: Copy) -> None:
    refused = [name for name in ("Attachment", "User", "Task") if _is_refused(copy, name)]
    for name in refused:
        schema = copy.describe(name).schema
        rows = [row for table in read_over_rest(copy.org.rest, schema, existing(schema)) for row in table.to_pylist()]
        assert {row["Id"] for row in rows} == sandbox.ledger.state(name).keys()


def _is_refused(copy: Copy, name: str) -> bool:
    try:
        with copy.org.bulk.query(copy.describe(name).schema):
            return False
    except BulkNotSupported:
        return True


def test_a_broken_stream_and_an_expired_token_lose_and_duplicate_nothing(sandbox: SalesforceOrg, copy: Copy) -> None:
    ids = sandbox.load("Account", [{"Name": f"A{n}"} for n in range(30)])
    copy.copy(*TABLES)
    for one in ids:
        with sandbox.transaction() as tx:
            tx.update("Account", one, {"Phone": one})
    sandbox.faults.rpc += [RpcFault("Subscribe", after_events=7), RpcFault("Subscribe", after_events=11)]
    sandbox.faults.rpc.append(RpcFault("Subscribe", "service.auth.error", "UNAUTHENTICATED", after_events=3))
    changes = copy.catch_up()
    assert len(changes) == 30 and copy.differences() == []


def test_case_26_and_27_after_a_migration_of_the_org_old_positions_are_lost(sandbox: SalesforceOrg, copy: Copy) -> None:
    before = copy.org.identity(), copy.org.instance
    sandbox.migrate()
    del copy.org.instance
    assert copy.org.identity() == before[0] and copy.org.instance != before[1]
    with pytest.raises(PositionLost, match="SRC013"):
        copy.drain()


def test_a_window_ends_while_another_object_changes_without_end(sandbox: SalesforceOrg, copy: Copy) -> None:
    """Whatever was committed before it began is in it."""
    sandbox.channels.selected.append(Member("Task"))
    one = sandbox.load("Account", [{"Name": "Acme"}])[0]
    copy.copy(*TABLES)
    with sandbox.transaction() as tx:
        tx.update("Account", one, {"Phone": "before the window"})
    over = threading.Event()

    def change_tasks() -> None:
        for number in range(300):
            with sandbox.transaction() as tx:
                tx.insert("Task", {"Subject": f"{number}"})
            if over.wait(0.1):
                return

    sandbox.pubsub.keepalive_s = 5
    busy = threading.Thread(target=change_tasks)
    busy.start()
    window = copy.drain()
    ended_while_busy = busy.is_alive()
    over.set()
    busy.join()
    assert ended_while_busy
    assert [json.loads(item.after or "")["Phone"] for item in window if isinstance(item, ChangeRecord)] == [
        "before the window"
    ]


def test_case_30_a_used_up_allocation_leaves_the_position_unchanged(sandbox: SalesforceOrg, copy: Copy) -> None:
    sandbox.faults.rpc.append(RpcFault("Subscribe", "subscription.limit.exceeded", "RESOURCE_EXHAUSTED"))
    before = dict(copy.position)
    with pytest.raises(SourceUnavailable, match="SRC041"):
        copy.drain()
    assert copy.position == before


def test_case_52_a_field_added_in_the_stream_is_emitted_from_its_first_value_on(
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
    (overflow,) = copy.catch_up()
    assert (overflow.table, overflow.op) == ("Invoice__c", "overflow")
    assert copy.differences() == []


def test_memory_stays_constant_over_a_transaction_of_many_changes(sandbox: SalesforceOrg, copy: Copy) -> None:
    """Records are emitted one by one, and only the caller keeps them."""
    ids = sandbox.load("Account", [{"Name": f"A{n}"} for n in range(3000)])
    with sandbox.transaction(coalesce=False) as tx:
        for one in ids:
            tx.update("Account", one, {"Phone": one})
    with copy.org.pubsub.connected() as pubsub:
        tasks = [copy.task("Account")]
        items = read_stream(pubsub, copy.org.rest, copy.org.options, copy.position, tasks, 1)
        first = next(item for item in items if isinstance(item, ChangeRecord))
        assert sandbox.bus.delivered <= 200, "most of the transaction has not been requested yet"
        rest = list(items)
    assert first.tx_id == rest[0].tx_id  # type: ignore[union-attr]
    assert sum(isinstance(item, Boundary) for item in rest) == 1
