"""Unreadable events: kept whole in their order, and decoded again on request."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.salesforce.dead_letters import reread, undecoded_event
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, channel_position
from airflow_cdc_provider.connectors.sources.salesforce.types import parse_description
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import is_insert, undecoded
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_events import ADA, BOB, Reading, event, task, updated

UNKNOWN_TYPE = "SNAPSHOT"


def unreadable_records(made: ChannelEvent, *tables: str) -> list[ChangeRecord]:
    """The unreadable records of an event."""
    items = Reading(*map(task, tables)).items(made)
    return [item for item in items if isinstance(item, ChangeRecord) and item.op == "unreadable"]


def test_case_58_an_event_of_an_unknown_change_type_is_kept_whole_and_never_skipped() -> None:
    made = event(UNKNOWN_TYPE, [ADA])
    (record,) = unreadable_records(made)
    what = undecoded(record)
    assert what is not None and b64decode(what.raw) == made.payload and what.op == ""
    assert (record.table, record.key, record.tx_id) == ("Account", f'["{ADA}"]', "tx-1")


def test_case_58_an_event_that_does_not_fit_its_schema_is_kept_with_the_values_of_its_header() -> None:
    made = event(changed=["0x2"], Name="x")
    (record,) = unreadable_records(made._replace(payload=made.payload[:-3]))
    assert (record.key, record.commit_ts) == (f'["{ADA}"]', datetime(2026, 3, 1, 12, tzinfo=UTC))
    (record,) = unreadable_records(made._replace(payload=made.payload + b"\0"))
    what = undecoded(record)
    assert what is not None and "1 bytes are left" in what.reason and what.op == "update"


def test_case_58_each_record_of_an_unreadable_merged_event_is_kept_by_itself() -> None:
    made = event("CREATE", [ADA, BOB], Name="x")
    records = unreadable_records(made._replace(payload=made.payload[:-1]))
    assert [record.key for record in records] == [f'["{ADA}"]', f'["{BOB}"]']
    assert all(is_insert(record) for record in records), "changes after an unreadable insert wait for it"
    assert len({record.order_key for record in records}) == len({record.event_id for record in records}) == 2


def test_case_58_an_event_without_a_readable_header_is_kept_for_the_object_of_its_schema() -> None:
    before, after = updated(Phone="1", seq=4), updated(Phone="2", seq=5)
    items = Reading(task("Account"), task("Contact")).items(before, event()._replace(payload=b"\xff"), after)
    records = [item for item in items if isinstance(item, ChangeRecord)]
    assert [record.op for record in records] == ["update", "unreadable", "update"]
    assert (records[1].table, records[1].key) == ("Account", None)
    keys = [record.order_key for record in records]
    assert keys == sorted(keys) and len(set(keys)) == 3, "in order between the others"


def test_case_58_an_event_of_an_unknown_schema_may_belong_to_any_object() -> None:
    records = unreadable_records(event()._replace(schema_id="unknown"), "Account", "Contact")
    assert [record.table for record in records] == ["Account", "Contact"]


def test_an_unreadable_record_decoded_again_equals_the_original_record() -> None:
    made = updated([ADA, BOB], Rating="Hot")
    schema = parse_description(org.DESCRIBES["Account"]).schema
    for record in Reading().decode(made):
        after = undecoded_event(made, org.event_schema("account-1"), "", "UPDATE")
        unread = replace(record, op="unreadable", key_before=None, after=after)
        assert reread(unread, schema, lambda entity: parse_description(org.DESCRIBES[entity])) == [record]


@pytest.mark.parametrize("scale", [3, 4])
def test_a_record_with_more_digits_than_its_column_is_rounded_only_while_the_field_has_this_type(scale: int) -> None:
    made = updated(Score__c=40.2515)
    account = org.DESCRIBES["Account"]
    schema = parse_description(account).schema
    fields = [{**one, "scale": scale} if one["name"] == "Score__c" else one for one in account["fields"]]
    after = undecoded_event(made, org.event_schema("account-1"), "", "UPDATE")
    (record,) = Reading().decode(made)
    unread = replace(record, op="unreadable", key_before=None, after=after)
    (found,) = reread(unread, schema, lambda entity: parse_description({**account, "fields": fields}))
    assert found == (record if scale == 3 else unread)


def test_a_record_that_is_still_unreadable_stays_as_it_is() -> None:
    schema = parse_description(org.DESCRIBES["Account"]).schema
    made = updated(Rating="Hot")
    broken = [
        made._replace(payload=made.payload[:-1]),
        made._replace(payload=b"\xff"),
        made._replace(schema_id="unknown"),
        event(UNKNOWN_TYPE, [ADA]),
        event("DELETE", ["unknown"]),
    ]
    for one in broken:
        (record,) = unreadable_records(one)
        assert reread(record, schema, lambda entity: parse_description(org.DESCRIBES[entity])) == [record]


def test_an_unreadable_event_keeps_its_transaction_open_so_that_it_is_not_skipped() -> None:
    reading = Reading()
    broken = event()._replace(payload=b"\xff")
    assert isinstance(reading.items(broken)[-1], ChangeRecord)
    (end,) = reading.quiet()
    assert isinstance(end, Boundary)
    assert channel_position(end.position, org.CHANNEL) == ChannelPosition(broken.replay_id, 8)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (event(changed=["0x100000000"]), "field 32 of a schema with 31 fields"),
        (event(changed=["5-0x0400"], BillingAddress={}), "a member that the field does not have"),
        (event(changed=["7-0x01"]), "members of a field that has none"),
        (event(changed=["Industry"]), "not of the form"),
        (event("DELETE", ["unknown"]), "a record id that is not valid"),
        (updated(AnnualRevenue=1e300), "column AnnualRevenue: more digits than decimal(18,2) has"),
        (event(tx=""), "no transaction"),
        (event(seq=-1), "no transaction key, or no valid sequence number"),
        (event(at_ms=1 << 62), "a commit timestamp out of range"),
    ],
)
def test_an_event_with_an_invalid_meaning_is_reported_without_its_values(made: Any, reason: str) -> None:
    what = undecoded(unreadable_records(made)[-1])
    assert what is not None and reason in what.reason
    assert ADA not in what.reason and "1e300" not in what.reason


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_the_decoder_fail_or_lose_them(payload: bytes) -> None:
    made = event()._replace(payload=payload)
    assert Reading().items(made), "kept, counted or decoded"
