"""Polled Salesforce objects, against the sandbox org. Its clock stands still between the steps of a test."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary, HoleFound, SplitRead, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.values import from_json
from airflow_cdc_provider.connectors.sources.salesforce_poll import reading
from airflow_cdc_provider.connectors.sources.salesforce_poll import rows as rows_module
from airflow_cdc_provider.connectors.sources.salesforce_poll.source import SalesforcePollSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Source, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from tests.connectors.salesforce_copy import CHANGES, TABLES, plain

pytestmark = pytest.mark.server

DAY_S = 86_400
LATER_S = 400
"""A little more than the commit latency."""


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


@dataclass
class Crm:
    """A plain copy of the objects that every window is applied to."""

    org: SalesforceOrg
    options: dict[str, Any]
    position: Position = field(default_factory=dict)
    rows: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        extra = {"consumer_key": self.org.client_id, "consumer_secret": self.org.client_secret}
        info = ConnectionInfo("crm", extra={**extra, "instance_url": self.org.instance_url})
        given = {"objects": list(TABLES), **self.options}
        self.source = SalesforcePollSource(Source("salesforce_poll", "crm", options=given), info, "crm")
        self.source.org.http._sleep = lambda seconds: None
        self.source.org.bulk._sleep = lambda seconds: None
        self.tables = list(self.source.options.objects)
        self.position = self.source.open_stream(self.tables)

    def task(self, table: str, **rule: Any) -> TableTask:
        made = TableRule(table, **rule)
        schema = selected_schema(made, next(one for one in self.source.tables() if one.table == table))
        return TableTask(table, table, schema, made, "0" * 64, TableState.REPLICATING)

    def copy(self, *tables: str) -> None:
        for table in tables:
            with self.source.copy(self.task(table), 1, self.position, 4) as copy:
                assert isinstance(copy.read, SplitRead)
                pages = [page for split in copy.read.splits for page in self.source.read_split(split, copy.schema)]
            self.rows[table] = {
                row["Id"]: {n: plain(v) for n, v in row.items()} for p in pages for row in p.to_pylist()
            }

    def window(self) -> list[StreamItem]:
        status = self.source.status(self.position, self.tables)
        if not status.has_changes:
            self.position = status.idle or self.position
            return []
        items: list[StreamItem] = []
        for split in self.source.splits(self.position, status.limit):
            for item in self.source.read(split, [self.task(table) for table in split.lo], 1):
                items.append(item)
                if isinstance(item, Boundary):
                    self.position = {**self.position, **item.position}
        records = [item for item in items if isinstance(item, ChangeRecord) and item.op != "schema"]
        for record in sorted(records, key=lambda record: record.order_key):
            (key,) = json.loads(record.key_before or "")
            self.rows[record.table].pop(key, None)
            if record.after is not None:
                self.rows[record.table][key] = json.loads(record.after)
        return items

    def differences(self) -> list[str]:
        return [line for table in self.rows for line in self._different(table)]

    def _different(self, table: str) -> Iterator[str]:
        ledger, found = self.org.ledger.state(table), self.rows[table]
        if ledger.keys() != found.keys():
            yield f"{table}: ids {sorted(ledger.keys() ^ found.keys())[:3]}"
        unpolled = self.source._describe(table).snapshot_only - {"SystemModstamp"}
        columns = [column for column in self.task(table).schema.columns if column.name not in unpolled]
        for one in ledger.keys() & found.keys():
            for column in columns:
                expected = json.loads(from_json(column.type)(ledger[one][column.name]))
                if expected != found[one][column.name]:
                    yield f"{table} {one}.{column.name}: {found[one][column.name]!r}, but the ledger has {expected!r}"


def crm(org: SalesforceOrg, **options: Any) -> Crm:
    return Crm(org, options)


def fill(org: SalesforceOrg, table: str, count: int, seed: str = "1") -> list[str]:
    chance = random.Random(seed)
    first = {"Account": {"Name": "New"}, "Contact": {"LastName": "New"}, "Invoice__c": {}}[table]
    names = sorted(CHANGES[table])
    return org.load(table, [{**first, **{n: chance.choice(CHANGES[table][n]) for n in names}} for _ in range(count)])


def records(items: list[StreamItem]) -> list[ChangeRecord]:
    return [item for item in items if isinstance(item, ChangeRecord)]


def test_the_copy_follows_inserts_deletes_restores_and_changes_by_the_org_itself(org: SalesforceOrg) -> None:
    invoices = fill(org, "Invoice__c", 12)
    (account, *_) = fill(org, "Account", 5)
    copy = crm(org, page_rows=100)
    copy.copy("Account", "Invoice__c")
    assert copy.differences() == [] and copy.window() == []
    with org.transaction() as tx:
        tx.update_many("Invoice__c", invoices[:3], {"Amount__c": 7})
        tx.update("Account", account, {"Phone": "1"}, system=True)
        tx.delete("Invoice__c", invoices[4], invoices[5])
        tx.insert("Invoice__c", {"Amount__c": 1})
    assert copy.window() == [], "it is too young"
    org.clock.advance(LATER_S)
    assert {record.op for record in records(copy.window())} == {"upsert", "delete"}
    assert copy.differences() == []
    with org.transaction() as tx:
        tx.undelete("Invoice__c", invoices[4])
    org.clock.advance(LATER_S)
    copy.window()
    assert copy.differences() == []


def test_case_35_a_commit_behind_the_high_mark_is_read_in_the_overlap(org: SalesforceOrg) -> None:
    one, other = fill(org, "Account", 2)
    copy = crm(org)
    copy.copy("Account")
    late = org.transaction()
    late.update("Account", one, {"Phone": "late"})
    org.clock.advance(LATER_S)
    with org.transaction() as tx:
        tx.update("Account", other, {"Phone": "other"})
    org.clock.advance(LATER_S)
    copy.window()
    assert copy.rows["Account"][one]["Phone"] != "late" and copy.rows["Account"][other]["Phone"] == "other"
    late.commit()
    copy.window()
    org.clock.advance(10)
    copy.window()
    assert copy.differences() == []


def test_case_36_a_second_with_more_rows_than_a_page_is_read_completely(org: SalesforceOrg) -> None:
    copy = crm(org, page_rows=100)
    copy.copy("Account")
    fill(org, "Account", 1050)
    org.clock.advance(LATER_S)
    items = copy.window()
    assert len(records(items)) == 1050 and sum(isinstance(item, Boundary) for item in items) == 12
    assert copy.differences() == []


def test_case_38_a_window_that_ends_in_an_interval_continues_where_it_ended(org: SalesforceOrg) -> None:
    copy = crm(org, page_rows=100)
    fill(org, "Account", 250)
    org.clock.advance(LATER_S)
    status = copy.source.status(copy.position, ["Account"])
    (split,) = copy.source.splits(copy.position, status.limit)
    keys: list[str | None] = []
    for item in copy.source.read(split, [copy.task("Account")], 1):
        if isinstance(item, Boundary):
            copy.position = {**copy.position, **item.position}
            break
        keys += [item.key] if isinstance(item, ChangeRecord) else []
    fill(org, "Account", 3)
    org.clock.advance(5)
    copy.rows["Account"] = {}
    keys += [record.key for record in records(copy.window())]
    assert len(keys) == len(set(keys)) == 250, "neither the overlap nor rows that are too young"


def test_case_37_the_clock_is_that_of_the_org_whatever_the_clock_of_the_worker(org: SalesforceOrg) -> None:
    org.clock.advance(-5 * 3600)
    copy = crm(org)
    copy.copy("Account")
    fill(org, "Account", 2)
    org.clock.advance(LATER_S)
    copy.window()
    assert copy.differences() == [] and len(copy.rows["Account"]) == 2


def test_case_47_a_delete_that_left_the_recycle_bin_is_still_emitted(org: SalesforceOrg) -> None:
    invoices = fill(org, "Invoice__c", 3)
    copy = crm(org)
    copy.copy("Invoice__c")
    org.clock.advance(1)
    with org.transaction() as tx:
        tx.delete("Invoice__c", invoices[0])
    with org.transaction() as tx:
        tx.purge("Invoice__c", invoices[0])
    org.clock.advance(2 * 3600)
    (record,) = [record for record in records(copy.window()) if record.op == "delete"]
    assert record.key_before == f'["{invoices[0]}"]'
    assert copy.differences() == []


@pytest.mark.parametrize("why", ["purged", "too long ago"])
def test_case_47_unlisted_deletes_are_found_by_an_audit_of_keys(org: SalesforceOrg, why: str) -> None:
    fill(org, "Invoice__c", 3)
    copy = crm(org)
    copy.tables = ["Invoice__c"]
    copy.copy("Invoice__c")
    if why == "purged":
        org.clock.advance(LATER_S)
        org.delete_log_since = org.clock.second()
        fill(org, "Invoice__c", 1)
        org.clock.advance(LATER_S)
    else:
        org.clock.advance(20 * DAY_S)
        fill(org, "Invoice__c", 1)
        org.clock.advance(LATER_S)
    (hole,) = [item for item in copy.window() if isinstance(item, HoleFound)]
    assert (hole.table, hole.kind) == ("Invoice__c", "audit")
    if why == "purged":
        org.clock.advance(3600)
        assert [type(item) for item in copy.window()] == [HoleFound, Boundary], "late deletes may lie before the purge"
    items = copy.window()
    assert len(records(items)) >= 1 and not [item for item in items if isinstance(item, HoleFound)]
    assert copy.differences() == []


def test_case_47_more_deletes_than_the_list_may_have_are_found_by_an_audit_of_keys(org: SalesforceOrg) -> None:
    copy = crm(org, objects=["Invoice__c"])
    fill(org, "Invoice__c", 1)
    org.clock.advance(LATER_S)
    org.faults.http.append(HttpFault("GET .*/deleted", 400, "EXCEEDED_ID_LIMIT", "no", times=9))
    (hole,) = [item for item in copy.window() if isinstance(item, HoleFound)]
    assert (hole.table, hole.kind) == ("Invoice__c", "audit")


def test_an_interval_that_continues_under_other_columns_lists_no_deletes_again(org: SalesforceOrg) -> None:
    """They were listed at its begin. An audit in its place reads no rows, and would skip the rest of the interval."""
    copy = crm(org, page_rows=100, objects=["Account"])
    fill(org, "Account", 250)
    org.clock.advance(LATER_S)
    status = copy.source.status(copy.position, ["Account"])
    (split,) = copy.source.splits(copy.position, status.limit)
    for item in copy.source.read(split, [copy.task("Account")], 1):
        if isinstance(item, Boundary):
            copy.position = {**copy.position, **item.position}
            break
    copy.position = {"Account": json.dumps({**json.loads(copy.position["Account"]), "schema": "other columns"})}
    org.faults.http.append(HttpFault("GET .*/deleted", 400, "EXCEEDED_ID_LIMIT", "no", times=9))
    copy.rows["Account"] = {}
    items = copy.window()
    assert not [item for item in items if isinstance(item, HoleFound)] and len(records(items)) >= 150


def test_a_bulk_value_of_another_type_is_an_error_of_its_object(
    org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BULK_FROM_ROWS", 1)
    copy = crm(org, objects=["Invoice__c"])
    fill(org, "Invoice__c", 3)
    org.clock.advance(LATER_S)

    def another_type(*given: Any) -> Any:
        raise DecodeError("column Amount__c: no number")

    monkeypatch.setattr(copy.source.org.bulk, "page", another_type)
    with pytest.raises(SourceUnavailable, match="SRC056"):
        copy.window()


def test_an_audit_runs_when_it_is_due(org: SalesforceOrg) -> None:
    copy = crm(org, key_audit=DAY_S)
    org.clock.advance(DAY_S)
    holes = [item for item in copy.window() if isinstance(item, HoleFound)]
    assert [hole.table for hole in holes] == sorted(TABLES)
    assert copy.window() == []


def test_many_rows_are_read_by_the_bulk_api_in_splits_with_the_same_values(
    org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BULK_FROM_ROWS", 50)
    monkeypatch.setattr(reading, "MAX_BULK_ROWS", 150)
    org.bulk.page_rows = 40
    copy = crm(org)
    copy.copy("Invoice__c")
    for number in range(6):
        fill(org, "Invoice__c", 60, f"{number}")
        org.clock.advance(30)
    with org.transaction() as tx:
        tx.delete("Invoice__c", *sorted(org.ledger.state("Invoice__c"))[:7])
    org.clock.advance(LATER_S)
    items = copy.window()
    assert copy.differences() == []
    assert 3 <= sum(isinstance(item, Boundary) for item in items) <= 8
    records_of = {record.key_before: record for record in records(items)}
    monkeypatch.setattr(reading, "BULK_FROM_ROWS", 10_000)
    for record in records(copy.window()):
        assert records_of[record.key_before].after == record.after, "the same bytes from both APIs"


def test_an_object_refused_by_bulk_and_one_too_wide_for_a_query_are_read_over_rest(
    org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch
) -> None:
    org.store.refuse_bulk("Account")
    copy = crm(org)
    copy.copy("Account")
    accounts = fill(org, "Account", 120)
    org.clock.advance(LATER_S)
    monkeypatch.setattr(reading, "BULK_FROM_ROWS", 50)
    monkeypatch.setattr(rows_module.soql, "fits", lambda text: len(text) < 400)
    with org.transaction() as tx:
        tx.delete("Account", accounts[3])
    org.clock.advance(LATER_S)
    copy.window()
    assert copy.differences() == []


def test_an_object_without_timestamps_is_copied_completely_in_every_run(org: SalesforceOrg) -> None:
    copy = crm(org, objects=["UserPreference"])
    for _ in range(2):
        org.clock.advance(1)
        (hole, end) = copy.window()
        assert isinstance(hole, HoleFound) and hole.kind == "reload" and isinstance(end, Boundary)


def test_a_lost_right_is_reported_and_no_row_is_emitted_as_deleted(org: SalesforceOrg) -> None:
    fill(org, "Account", 3)
    copy = crm(org, objects=["Account"])
    task = copy.task("Account")
    org.clock.advance(LATER_S)
    limit = copy.source.status(copy.position, ["Account"]).limit
    (split,) = copy.source.splits(copy.position, limit)
    org.faults.http.append(HttpFault("GET .*/query", 403, "INSUFFICIENT_ACCESS", "no", times=9))
    with pytest.raises(CheckFailed, match="SRC010"):
        list(copy.source.read(split, [task], 1))


def test_check_reports_hidden_objects_row_filters_and_fields_without_timestamps(org: SalesforceOrg) -> None:
    copy = crm(org, objects=["Account", "Nothing__c"], timestamp_columns={"Account": "Phone"})
    task = copy.task("Account", where=(Condition("Phone", Comparison.EQUAL, "1"),))
    assert [one.code for one in copy.source.check([task])] == ["SRC042", "SRC018", "SRC062"]
    assert crm(org).source.check([copy.task("Account")]) == []
