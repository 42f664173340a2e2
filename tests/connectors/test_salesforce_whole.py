"""The connector against the sandbox org, which reads the protocols by itself; its ledger is the judge."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from airflow_cdc_provider.connectors.salesforce.bulk import BulkRefused
from airflow_cdc_provider.connectors.salesforce.check import find_problems
from airflow_cdc_provider.connectors.salesforce.events import Undecodable
from airflow_cdc_provider.connectors.salesforce.fetch import fetch
from airflow_cdc_provider.connectors.salesforce.layout import Layout
from airflow_cdc_provider.connectors.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.salesforce.org import Org
from airflow_cdc_provider.connectors.salesforce.positions import place_of, position_of
from airflow_cdc_provider.connectors.salesforce.repeats import without_repeats
from airflow_cdc_provider.connectors.salesforce.rest_copy import rows_over_rest
from airflow_cdc_provider.connectors.salesforce.stream import drained
from airflow_cdc_provider.connectors.salesforce.types import Described, described
from airflow_cdc_provider.connectors.salesforce.values import from_json
from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.definition import TableRule
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable
from airflow_cdc_provider.core.positions import Position
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault, HttpFault, RpcFault
from airflow_cdc_provider.sandbox.salesforce.fields import text
from airflow_cdc_provider.sandbox.salesforce.users import Access
from tests.model.seeds import histories, seed

pytestmark = pytest.mark.server

CHANNEL = "/data/ChangeEvents"
TABLES = ("Account", "Contact", "Invoice__c")
SEED = seed()
Row = dict[str, Any]


class Copy:
    """A plain copy of three objects, kept as a consumer would: rows by id, what is unclear is fetched at the end."""

    def __init__(self, sandbox: SalesforceOrg) -> None:
        self.sandbox = sandbox
        options = SalesforceOptions(
            pubsub_endpoint=sandbox.pubsub_endpoint, pubsub_tls=False, idle=timedelta(seconds=5)
        )
        extra = {"consumer_key": sandbox.client_id, "consumer_secret": sandbox.client_secret}
        info = ConnectionInfo("crm", extra={**extra, "instance_url": sandbox.instance_url})
        self.org = Org(info, options, "crm")
        self.org.http._sleep = self.org.pubsub._sleep = lambda seconds: None
        self.rows: defaultdict[str, dict[str, Row]] = defaultdict(dict)
        self.seen: set[str] = set()
        with self.org.pubsub.connected() as pubsub:
            self.position: Position = position_of(CHANNEL, pubsub.newest(CHANNEL))

    def describe(self, table: str) -> Described:
        return described(self.org.rest.describe(table))

    def task(self, table: str) -> TableTask:
        return TableTask(table, table, self.describe(table).schema, TableRule(table), "0" * 64, TableState.REPLICATING)

    def copy(self, *tables: str) -> None:
        for table in tables:
            schema = self.describe(table).schema
            self.rows[table] = {}
            with self.org.bulk.query(schema) as job:
                for page in job.pages:
                    self._put(table, self.org.bulk.page(page, schema).rows.to_pylist())
            assert len(self.rows[table]) == job.rows

    def _put(self, table: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows[table][row["Id"]] = {name: plain(value) for name, value in row.items()}

    def drain(self) -> list[StreamItem | Undecodable]:
        """One window: everything up to its last boundary."""
        with self.org.pubsub.connected() as pubsub:
            tasks = [self.task(table) for table in TABLES]
            items = drained(pubsub, self.org.rest, self.org.options, self.position, tasks, 1)
            taken = list(without_repeats(items, self.seen))
        while taken and not isinstance(taken[-1], Boundary):
            taken.pop()
        if taken and isinstance(taken[-1], Boundary):
            self.position = taken[-1].position
        return taken

    def catch_up(self) -> list[ChangeRecord]:
        """Windows until there is no more; then what gaps, overflows and missing values left open."""
        told: list[ChangeRecord] = []
        while window := self.drain():
            assert not any(isinstance(item, Undecodable) for item in window)
            told += [item for item in window if isinstance(item, ChangeRecord)]
            self.seen |= {record.event_id for record in told}
            if place_of(self.position, CHANNEL).replay_id == self._tip():
                break
        unclear: defaultdict[str, set[str]] = defaultdict(set)
        for record in sorted(told, key=lambda record: record.order_key):
            self._apply(record, unclear)
        for table, ids in unclear.items():
            self._fetch(table, sorted(ids))
        self.copy(*{record.table for record in told if record.op == "overflow"})
        return told

    def _tip(self) -> bytes:
        with self.org.pubsub.connected() as pubsub:
            return pubsub.newest(CHANNEL).replay_id

    def _apply(self, record: ChangeRecord, unclear: defaultdict[str, set[str]]) -> None:
        rows, key = self.rows[record.table], json.loads(record.key or record.key_before or "[null]")[0]
        if record.op == "gap" or record.refetch or (record.op == "update" and key not in rows):
            unclear[record.table].add(key)  # an update without its row: it was deleted before the copy was made
        if record.op == "delete":
            rows.pop(key, None)
        elif record.op in ("update", "upsert"):
            rows[key] = {**rows.get(key, {}), **json.loads(record.after or "{}")}

    def _fetch(self, table: str, ids: list[str]) -> None:
        told = fetch(self.org.rest, self.describe(table).schema, ids, self.describe)
        for one in (*told.deleted, *told.gone):
            self.rows[table].pop(one, None)
        for one, found in told.found.items():
            self.rows[table][one] = json.loads(found.after)

    def differences(self) -> list[str]:
        """What the copy holds otherwise than the ledger; columns that no event tells are left out."""
        return [line for table in TABLES for line in self._different(table)]

    def _different(self, table: str) -> Iterator[str]:
        schema = self.describe(table).schema
        unsent = self.unsent(table)
        truth = self.sandbox.ledger.state(table)
        if truth.keys() != self.rows[table].keys():
            yield f"{table}: ids {sorted(truth.keys() ^ self.rows[table].keys())[:3]}"
        for one in truth.keys() & self.rows[table].keys():
            for column in schema.columns:
                expected = json.loads(from_json(column.type, print)(truth[one][column.name]))
                found = self.rows[table][one].get(column.name)
                if column.name not in unsent and expected != found:
                    yield f"{table}.{column.name}: {found!r}, in truth {expected!r}"

    def unsent(self, table: str) -> frozenset[str]:
        name = f"{table.removesuffix('c')}ChangeEvent" if table.endswith("__c") else f"{table}ChangeEvent"
        found = self.describe(table)
        with self.org.pubsub.connected() as pubsub:
            event = pubsub.schema(pubsub.topic(f"/data/{name}").schema_id)
        return Layout(event, found, found.schema).unsent | found.snapshot_only


def plain(value: Any) -> Any:
    """A value of a typed row in the terms of canonical JSON."""
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else value


@pytest.fixture
def sandbox() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05) as org:
        yield org


@pytest.fixture
def copy(sandbox: SalesforceOrg) -> Copy:
    return Copy(sandbox)


TEXTS = [None, "x", "NA", 'a "b",\nc', "Grüße ☃", " y ", "l1\r\nl2\r\nl3"]
CHANGES: dict[str, dict[str, list[Any]]] = {
    "Account": {
        "Name": ["Acme", "Engines", "Zoo"],
        "Phone": [None, "1", "22"],
        "BillingStreet": TEXTS,
        "BillingLatitude": [None, 12.5, -3.333333],
        "ShippingCity": ["Ulm", None],
        "Description": ["\r\n".join(f"line {n} {w}" for n in range(80)) for w in "abc"] + [None, "short"],
        "Amount_Owed__c": [None, 0, 12.34, -0.01],
        "NumberOfEmployees": [None, 7],
        "Regions__c": ["EU;US", None],
    },
    "Contact": {
        "LastName": ["King", "Byron"],
        "FirstName": ["Ada", None],
        "MailingCountry": ["Italy", None],
        "Birthdate": ["1815-12-10", None],
        "DoNotCall": [True, False],
    },
    "Invoice__c": {
        "Amount__c": [None, 0.1, 100],
        "Quantity__c": [1.000001, None],
        "Weight__c": [12, 3_000_000_000],
        "Discount__c": [12.25, None],
        "Issued__c": ["2026-03-01", None],
        "Due__c": ["2026-03-01T12:00:00Z", None],
        "Call_At__c": ["09:30:00.000Z", None],
        "Paid__c": [True, False],
        "Tags__c": ["a;b", None],
        "Terms__c": TEXTS,
        "Place__Latitude__s": [1.5, None],
        "Place__Longitude__s": [-1.5, None],
    },
}


PLACE = {"Place__Latitude__s", "Place__Longitude__s"}


class Writer:
    """Random transactions, one after another."""

    def __init__(self, sandbox: SalesforceOrg, chance: random.Random) -> None:
        self.sandbox = sandbox
        self.chance = chance
        self.bin: list[tuple[str, str]] = []

    def live(self, table: str) -> list[str]:
        return sorted(self.sandbox.ledger.state(table))

    def values(self, table: str, most: int) -> Row:
        names = set(self.chance.sample(sorted(CHANGES[table]), self.chance.randint(1, most)))
        if names & PLACE:  # an event tells both coordinates, whichever changed
            names |= PLACE
        return {name: self.chance.choice(CHANGES[table][name]) for name in sorted(names)}

    def transact(self) -> None:
        if self.chance.random() < 0.3:
            self.sandbox.clock.advance(1)
        with self.sandbox.transaction(coalesce=self.chance.random() < 0.7, as_gap=self.chance.random() < 0.1) as tx:
            touched: set[str] = set()
            for _ in range(self.chance.randint(1, 5)):
                table = self.chance.choice(TABLES)
                free = [one for one in self.live(table) if one not in touched]
                act = self.chance.random()
                if act < 0.35 or not free:
                    first = {"Account": {"Name": "New"}, "Contact": {"LastName": "New"}, "Invoice__c": {}}[table]
                    tx.insert(table, {**first, **self.values(table, 4)})
                elif act < 0.8:
                    some = self.chance.sample(free, min(len(free), self.chance.choice([1, 1, 3])))
                    tx.update_many(table, some, self.values(table, 3))
                elif act < 0.9 and table == "Invoice__c":
                    one = self.chance.choice(free)
                    tx.delete(table, one)
                    touched.add(one)
                    self.bin.append((table, one))
                elif self.bin:
                    table, one = self.bin.pop()
                    if one not in touched:
                        tx.undelete(table, one)
                        touched.add(one)
        if self.chance.random() < 0.1 and (known := self.live("Account")):
            self.sandbox.gap("Account", self.chance.sample(known, min(2, len(known))))
        if self.chance.random() < 0.1:
            self.sandbox.bus.repeat(self.chance.randint(1, 3))


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
        rows = [row for table in rows_over_rest(copy.org.rest, schema) for row in table.to_pylist()]
        assert {row["Id"] for row in rows} == sandbox.ledger.state(name).keys()


def _is_refused(copy: Copy, name: str) -> bool:
    try:
        with copy.org.bulk.query(copy.describe(name).schema):
            return False
    except BulkRefused:
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
    sandbox.migrate()
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
        items = drained(pubsub, copy.org.rest, copy.org.options, copy.position, tasks, 1)
        first = next(item for item in items if isinstance(item, ChangeRecord))
        assert sandbox.bus.delivered <= 200, "most of the transaction has not been asked for yet"
        rest = list(items)
    assert first.tx_id == rest[0].tx_id  # type: ignore[union-attr]
    assert sum(isinstance(item, Boundary) for item in rest) == 1
