"""Salesforce as a source connector, against the sandbox org."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary, SourceStatus, SplitRead
from airflow_cdc_provider.connectors.sources.salesforce import channel_status, rest_copy
from airflow_cdc_provider.connectors.sources.salesforce.carried import sees_every_record_of
from airflow_cdc_provider.connectors.sources.salesforce.channel_status import ADVANCE_AFTER_S, WAIT_AFTER_S, read_status
from airflow_cdc_provider.connectors.sources.salesforce.copy import open_splits, read_split
from airflow_cdc_provider.connectors.sources.salesforce.fetch import fetch
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, channel_position, position_of
from airflow_cdc_provider.connectors.sources.salesforce.source import SalesforceSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, PositionLost
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, Source, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.users import Access
from tests.connectors.salesforce_events import CHANNEL, updated
from tests.connectors.salesforce_pubsub import EventServer, Tokens, numbered

pytestmark = pytest.mark.server

SOME = numbered([updated(Phone="1"), updated(tx="2", Phone="2")])
NOW_S = 1_772_366_400
ORG_NOW = datetime.fromtimestamp(NOW_S + 600, UTC)


@pytest.fixture
def sandbox() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05) as org:
        yield org


@pytest.fixture
def source(sandbox: SalesforceOrg) -> SalesforceSource:
    extra = {"consumer_key": sandbox.client_id, "consumer_secret": sandbox.client_secret}
    options = {"pubsub_endpoint": sandbox.pubsub_endpoint, "pubsub_tls": False, "idle": 5}
    info = ConnectionInfo("crm", extra={**extra, "instance_url": sandbox.instance_url})
    return SalesforceSource(Source("salesforce", "crm", options=options), info, "crm")


def task(source: SalesforceSource, table: str, **rule: Any) -> TableTask:
    made = TableRule(table, **rule)
    schema = selected_schema(made, next(one for one in source.tables() if one.table == table))
    return TableTask(table, table, schema, made, "0" * 64, TableState.REPLICATING)


def test_its_tables_are_the_objects_of_the_channel(source: SalesforceSource) -> None:
    assert [schema.table for schema in source.tables()] == ["Account", "Contact", "Invoice__c"]
    assert all(schema.key == ("Id",) for schema in source.tables())


def test_a_stream_has_the_new_changes_and_then_no_more(sandbox: SalesforceOrg, source: SalesforceSource) -> None:
    (one,) = sandbox.load("Account", [{"Name": "A"}])
    start = source.open_stream(["Account"])
    assert not source.status(start, ["Account"]).has_changes
    with sandbox.transaction() as tx:
        tx.update("Account", one, {"Phone": "1"})
    assert source.status(start, ["Account"]) == SourceStatus(True, start)
    (split,) = source.splits(start, source.status(start, ["Account"]).limit)
    items = list(source.read(split, [task(source, "Account")], 1))
    (record,) = [item for item in items if isinstance(item, ChangeRecord)]
    assert (record.op, json.loads(record.after or "")["Phone"]) == ("update", "1")
    end = items[-1]
    assert isinstance(end, Boundary) and not source.status(end.position, ["Account"]).has_changes
    source.acknowledge(end.position)
    source.drop_stream()


def test_case_26_the_status_at_an_expired_position_is_lost(sandbox: SalesforceOrg, source: SalesforceSource) -> None:
    start = source.open_stream(["Account"])
    sandbox.migrate()
    with pytest.raises(PositionLost, match="SRC013"):
        source.status(start, ["Account"])


@pytest.mark.parametrize(
    ("age_s", "moved"),
    [(10, False), (ADVANCE_AFTER_S + 10, False), (WAIT_AFTER_S + 10, True)],
    ids=["fresh", "not so fresh, and no keepalive at once", "old"],
)
def test_case_28_an_old_position_waits_for_a_keepalive_and_advances(
    age_s: int, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_status, "PEEK_TIMEOUT_S", 0.02)
    last = position_of(CHANNEL, ChannelPosition(SOME[-1].replay_id, 2, NOW_S - age_s))
    with EventServer(SOME, keepalive_s=0.2, latest=b"far") as server, Tokens().client(server).connected() as connection:
        status = read_status(connection, SalesforceOptions(), last, NOW_S, lambda: ORG_NOW)
    assert not status.has_changes and (status.idle is not None) == moved
    if status.idle:
        found = channel_position(status.idle, CHANNEL)
        assert (found.replay_id, found.transactions, found.at_s) == (b"far", 2, ORG_NOW.timestamp())


def test_a_status_with_changes_has_no_idle_position() -> None:
    first = position_of(CHANNEL, ChannelPosition(SOME[0].replay_id, 1, 0))
    with EventServer(SOME) as server, Tokens().client(server).connected() as connection:
        status = read_status(connection, SalesforceOptions(), first, NOW_S, lambda: ORG_NOW)
    assert status == SourceStatus(True, first)


def test_case_14_the_anchor_of_a_copy_is_the_end_of_the_last_window_and_later_changes_are_read_again(
    sandbox: SalesforceOrg, source: SalesforceSource
) -> None:
    ids = sandbox.load("Account", [{"Name": f"A{n}"} for n in range(10)])
    sealed = source.open_stream(["Account"])
    with sandbox.transaction() as tx:
        tx.update("Account", ids[0], {"Phone": "before the copy"})
    table = task(source, "Account")
    with source.copy(table, 1, sealed, 1) as copy:
        assert isinstance(copy.read, SplitRead)
        rows = [
            row
            for split in copy.read.splits
            for part in read_split(source.org, split, copy.schema)
            for row in part.to_pylist()
        ]
    assert (copy.position, copy.rows, len(rows)) == (sealed, 10, 10)
    assert rows[0]["Phone"] == "before the copy", "and yet the change is read again:"
    (split,) = source.splits(sealed, sealed)
    (again,) = [item for item in source.read(split, [table], 1) if isinstance(item, ChangeRecord)]
    assert again.order_key > copy.floor


def test_an_object_that_the_bulk_api_refuses_is_copied_over_rest(
    sandbox: SalesforceOrg, source: SalesforceSource
) -> None:
    sandbox.load("Account", [{"Name": f"A{n}"} for n in range(10)])
    no = "Entity 'Account' is not supported by the Bulk API."
    sandbox.faults.http.append(HttpFault("POST .*jobs/query", 400, "INVALIDENTITY", no))
    with source.copy(task(source, "Account"), 1, source.open_stream([]), 1) as copy:
        (split,) = copy.read.splits
        assert sum(part.num_rows for part in read_split(source.org, split, copy.schema)) == 10


def load_and_remove_tasks(sandbox: SalesforceOrg) -> list[str]:
    """Returns those that exist: the second is archived. The third is in the recycle bin, the fourth gone."""
    ids = sandbox.load("Task", [{"Subject": f"T{n}"} for n in range(5)])
    sandbox.archive("Task", [ids[1]])
    with sandbox.transaction() as tx:
        tx.delete("Task", ids[2], ids[3])
    with sandbox.transaction() as tx:
        tx.purge("Task", ids[3])
    return [ids[0], ids[1], ids[4]]


@pytest.mark.parametrize("path", ["bulk", "rest", "rest by ids"])
def test_a_copy_has_archived_records_and_none_of_the_recycle_bin(
    sandbox: SalesforceOrg, source: SalesforceSource, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a fetch has them, and a poll: what one reader leaves out, the next one would delete."""
    exist = load_and_remove_tasks(sandbox)
    if path != "bulk":
        sandbox.store.refuse_bulk("Task")
    if path == "rest by ids":
        monkeypatch.setattr(rest_copy, "MAX_QUERY_BYTES", 10)
    described = source.org.rest.describe("Task")
    schema = selected_schema(TableRule("Task", columns=Columns(include=("Id", "Subject"))), described.schema)
    with open_splits(source.org, schema, described) as (read, _):
        parts = [part for split in read.splits for part in read_split(source.org, split, schema)]
    assert sorted(row["Id"] for part in parts for row in part.to_pylist()) == exist
    every_id = sorted(sandbox.store.table("Task").rows)
    assert sorted(fetch(source.org.rest, schema, every_id, source.org.rest.describe).rows) == exist


def test_an_object_without_recycle_bin_is_copied_whole(sandbox: SalesforceOrg, source: SalesforceSource) -> None:
    described = source.org.rest.describe("LoginHistory")
    (user,) = sorted(sandbox.ledger.state("User"))[:1]
    ids = sandbox.load("LoginHistory", [{"UserId": user}])
    with open_splits(source.org, described.schema, described) as (read, rows):
        assert (rows, len(read.splits)) == (len(ids), 1)


def test_an_object_with_a_column_of_an_unknown_type_is_refused_alone(
    sandbox: SalesforceOrg, source: SalesforceSource
) -> None:
    sandbox.store.add_field("Account", Field("Tree__c", "hologram", None))
    refused = source.refused([task(source, "Account"), task(source, "Contact")])
    assert {table: problem.code for table, problem in refused.items()} == {"Account": "SRC118"}
    assert source.refused([task(source, "Account", columns=Columns(exclude=("Tree__c",)))]) == {}


def test_only_salesforce_says_that_a_user_sees_every_record(sandbox: SalesforceOrg, source: SalesforceSource) -> None:
    assert sees_every_record_of(source.org, "Account")
    assert not sees_every_record_of(source.org, "Task"), "no channel answers"
    sandbox.integration.access["Account"] = Access.OWN
    assert not sees_every_record_of(source.org, "Account")


def test_excluded_columns_are_not_requested(sandbox: SalesforceOrg, source: SalesforceSource) -> None:
    sandbox.load("Account", [{"Name": "A"}])
    few = task(source, "Account", columns=Columns(include=("Id", "Name")))
    with source.copy(few, 1, source.open_stream([]), 1) as copy:
        (split,) = copy.read.splits
        (part,) = read_split(source.org, split, copy.schema)
    assert part.to_pylist() == [{"Id": next(iter(sandbox.ledger.state("Account"))), "Name": "A"}]


@pytest.mark.parametrize(
    ("rule", "code"),
    [({"key": ("Name",)}, "SRC016"), ({"where": (Condition("Name", Comparison.EQUAL, "x"),)}, "SRC018")],
)
def test_a_rule_that_partial_changes_cannot_keep_is_refused_before_reading(
    source: SalesforceSource, rule: dict[str, Any], code: str
) -> None:
    start = source.open_stream([])
    table = task(source, "Account", **rule)
    with pytest.raises(CheckFailed, match=code):
        list(source.read(source.splits(start, start)[0], [table], 1))
    with pytest.raises(CheckFailed, match=code), source.copy(table, 1, start, 1):
        pass


def test_missing_packages_are_reported_with_the_command_that_installs_them(
    source: SalesforceSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(NotInstalled, match=r"ENV010.*fastavro.*airflow-cdc-provider\[salesforce\]"):
        source.tables()
