"""The sandbox org is consistent: a client that follows its events from the start has the rows of its ledger."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg, fields
from airflow_cdc_provider.sandbox.salesforce.demo import SMALL, Load, fill
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from tests.connectors.salesforce_bus import LATEST, ReceivedEvent, Subscriber, published
from tests.connectors.salesforce_rest import Client
from tests.model import seeds

NAMES = ("Account", "Contact", "Invoice__c")
Copy = dict[str, dict[str, Any]]


def event_values(org: OrgState, name: str) -> Copy:
    """The values of each record that events contain; formulas change without an event."""
    schema = org.schemas.current(name)
    formulas = {field.name for field in schema.type.fields if field.formula}
    return {key: flat(schema.body(row, org.clock.second()), formulas) for key, row in org.ledger.rows(name).items()}


def flat(body: dict[str, Any], without: set[str]) -> dict[str, Any]:
    """Parts of compounds under names of their own, without nulls."""
    found = {}
    for name, value in body.items():
        if isinstance(value, dict):
            found |= {f"{name}.{part}": one for part, one in value.items() if one is not None}
        elif name not in without:
            found[name] = value
    return found


def follow(copy: Copy, event: ReceivedEvent, formulas: set[str]) -> None:
    for key in event.ids:
        match event.kind:
            case "DELETE":
                del copy[key]
            case "CREATE" | "UNDELETE":
                copy[key] = flat(event.body, formulas)
            case "UPDATE":
                change(copy[key], event)
            case other:
                raise AssertionError(other)


def change(record: dict[str, Any], event: ReceivedEvent) -> None:
    body = flat(event.body, set())
    for name in event.changed:
        value = body.get(name)
        if name in event.diffs:
            value = patched(record[name], value)
        if value is None:
            record.pop(name, None)
        else:
            record[name] = value
    assert {name for name in event.changed if body.get(name) is None} == set(event.nulled)


def patched(text: str, diff: str) -> str:
    lines, newline = text.split("\r\n"), "\r\n"
    head, *rest = diff.split("\n")[1:]
    at, shift = 0, 0
    for line in rest:
        if line.startswith("@@"):
            start, count = map(int, line.split()[1][1:].split(","))
            at = start + shift - (1 if count else 0)
        elif line.startswith("-"):
            assert lines.pop(at) == line[1:]
            shift -= 1
        else:
            lines.insert(at, line[1:])
            at, shift = at + 1, shift + 1
    assert head == f"+++ {hashlib.sha256(newline.join(lines).encode()).hexdigest()}"
    return newline.join(lines)


@pytest.mark.parametrize("known", [1, 2, None])
def test_events_lead_from_any_start_to_the_state_of_the_ledger(known: int | None) -> None:
    seed = known or int(seeds.seed())
    org = OrgState(seed)
    org.clock.freeze()
    fill(org, SMALL, seed)
    copies = {name: event_values(org, name) for name in NAMES}
    load = Load(org, seed)
    for step in range(150):
        load.step()
        if step % 7 == 0:
            org.clock.advance(1)
        if step == 75:
            org.change_field("Account", fields.text("Nick__c", 40))
    undelete_some(org)
    formulas = {field.name for name in NAMES for field in org.store.table(name).type.fields if field.formula}
    for event in published(org):
        follow(copies[event.header["entityName"]], event, formulas)
    for name in NAMES:
        assert copies[name] == event_values(org, name), f"seed {seed}"
    assert load.done.keys() >= {"insert", "update", "mass update", "nulls", "text", "geocode", "pay", "delete"}


@pytest.mark.server
def test_writers_readers_and_subscribers_do_not_disturb_each_other() -> None:
    with SalesforceOrg(keepalive_s=0.2) as org, Client(org) as client:
        fill(org, SMALL)
        org.bulk.piece_rows = 50
        copies = {name: event_values(org, name) for name in NAMES}
        subscriber = Subscriber(org)
        with subscriber.stream(LATEST) as stream, Load(org, 3, pause_s=0), Load(org, 4, pause_s=0):
            stream.ask(100)
            give_up = time.monotonic() + 1.5
            while time.monotonic() < give_up:
                job = client.job("SELECT Id, Name, SystemModstamp FROM Account")
                assert client.query("SELECT COUNT() FROM Contact WHERE LeadSource = 'Web'").status_code == 200
                assert client.get("/admin/ledger/Account").status_code == 200
                client.wait(job)
            assert stream.next().events
        formulas = {field.name for name in NAMES for field in org.store.table(name).type.fields if field.formula}
        events = subscriber.read()
        for event in events:
            follow(copies[event.header["entityName"]], event, formulas)
        assert copies == {name: event_values(org, name) for name in NAMES}
        assert org.transactions == {} and org.store.holders == {}
        numbers = [event.header["commitNumber"] for event in events]
        assert numbers == sorted(numbers) and len(set(numbers)) > 20


def undelete_some(org: OrgState) -> None:
    with org.transaction() as transaction:
        for key in list(org.store.table("Contact").deletions)[::2]:
            transaction.undelete("Contact", key)


def test_the_ledger_at_each_past_time_equals_the_queries_then() -> None:
    org = OrgState()
    fill(org, SMALL)
    Load(org, 5).run(100)
    before_last = org.ledger.last
    with org.transaction():
        pass  # an empty commit, so that the last state is in the past
    for name in NAMES:
        assert org.ledger.rows(name, before_last, everything=True) == org.store.table(name).rows
