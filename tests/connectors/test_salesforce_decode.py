"""Change events become change records: which values count, which are unknown, and which are unreadable."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, parse_description
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_events import ADA, BOB, EVE, NOON_MS, Reading, event, task, updated

STREET = f"{org.INDEX['BillingAddress']}-0x01"


def test_an_update_is_the_change_record_of_its_row() -> None:
    made = updated(Name="Analytical Engines", seq=4)
    (record,) = Reading().decode(made)
    position = b64encode(made.replay_id).decode()
    assert replace(record, after=None, schema_id="") == ChangeRecord(
        "Account",
        "update",
        "00000003" + "0000000000000008" + "00000004" + "00000001",
        "",
        key_before=f'["{ADA}"]',
        key=f'["{ADA}"]',
        tx_id="tx-1",
        tx_seq=4,
        commit_ts=datetime(2026, 3, 1, 12, tzinfo=UTC),
        position=f'{{"replay_id":"{position}"}}',
        event_id=f"tx-1:4:Account:{ADA}:UPDATE",
    )


def test_case_01_a_null_counts_only_where_the_field_changed() -> None:
    bits = f"0x{1 << org.INDEX['Industry']:X}"
    assert Reading().after(event(changed=[bits], Industry=None, Phone=None)) == {"Industry": None}
    assert Reading().after(event(changed=[bits], nulled=[bits], Industry=None)) == {"Industry": None}


def test_a_value_of_an_unknown_type_is_fetched_and_a_null_is_a_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``doc`` of a field is its type. Values of an unknown type are known to the source only."""
    unknown = org.field("Founded__c", "Fortnight", "long")
    fields = [unknown if one["name"] == "Founded__c" else one for one in org.ACCOUNT_FIELDS]
    monkeypatch.setitem(org.SCHEMAS, "account-1", org.avro_schema("AccountChangeEvent", fields))
    (record,) = Reading().decode(updated(Founded__c=7))
    assert (json.loads(record.after or ""), record.refetch) == ({"Id": ADA}, ("Founded__c",))
    (record,) = Reading().decode(updated(Founded__c=None))
    assert (json.loads(record.after or ""), record.refetch) == ({"Id": ADA, "Founded__c": None}, ())
    (record,) = Reading().decode(event("CREATE", Name="Ada", Founded__c=None))
    assert "Founded__c" not in record.refetch and json.loads(record.after or "")["Founded__c"] is None


def test_an_amount_that_a_double_does_not_represent_is_fetched() -> None:
    (record,) = Reading().decode(updated(AnnualRevenue=9007199254740993.0, Phone="1"))
    assert (json.loads(record.after or ""), record.refetch) == ({"Id": ADA, "Phone": "1"}, ("AnnualRevenue",))


def test_case_02_an_event_with_only_a_nested_bitmap_changes_only_those_members() -> None:
    where = {"Street": None, "City": None, "Latitude": 12.5, "Longitude": -3.25}
    changed = [f"{org.INDEX['ShippingAddress']}-0x0180"]
    known = Reading().after(event(changed=changed, ShippingAddress=where))
    assert known == {"ShippingLatitude": "12.500000000000000", "ShippingLongitude": "-3.250000000000000"}


def test_case_03_each_event_is_read_with_the_schema_it_was_written_with(monkeypatch: pytest.MonkeyPatch) -> None:
    later = org.avro_schema("AccountChangeEvent", [org.field("Nickname__c"), *org.ACCOUNT_FIELDS])
    monkeypatch.setitem(org.SCHEMAS, "account-2", later)
    reading = Reading()
    old, new = 1 << org.INDEX["Phone"], 1 << org.INDEX["Phone"] + 1
    for schema, bits in (("account-1", old), ("account-2", new), ("account-1", old)):
        assert reading.after(event(schema=schema, changed=[f"0x{bits:X}"], Phone="1", Fax="2")) == {"Phone": "1"}


def test_case_04_members_of_an_address_are_found_by_name_in_the_schema_of_the_writer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = org.record("Address", ("Street", "string"), ("Xyz", "string"), ("City", "string"))
    schema = org.avro_schema("AccountChangeEvent", [org.field("BillingAddress", "Address", older)])
    monkeypatch.setitem(org.SCHEMAS, "account-0", schema)
    place = {"Street": "s", "Xyz": "1 2 0", "City": "Turin"}
    assert Reading().after(event(schema="account-0", changed=["1-0x06"], BillingAddress=place)) == {
        "BillingCity": "Turin"
    }


def test_case_05_a_merged_event_is_one_change_for_each_record() -> None:
    records = Reading().decode(updated([ADA, BOB, EVE], Rating="Hot"))
    assert [record.key for record in records] == [f'["{one}"]' for one in (ADA, BOB, EVE)]
    assert [json.loads(record.after or "")["Rating"] for record in records] == ["Hot"] * 3
    assert len({record.order_key for record in records}) == len({record.event_id for record in records}) == 3


@pytest.mark.parametrize("change", ["UPDATE", "GAP_UPDATE", "DELETE"])
def test_case_06_an_id_with_an_asterisk_stands_for_the_whole_table(change: str) -> None:
    (record,) = Reading().decode(event(change, ["001*"]))
    assert (record.op, record.key, record.after) == ("overflow", None, f'{{"change_type":"{change}"}}')


@pytest.mark.parametrize("ids", [["000000000000000AAA"], [], ["no id at all"]])
def test_case_07_an_overflow_is_recognised_by_its_type_before_its_ids(ids: list[str]) -> None:
    (record,) = Reading().decode(event("GAP_OVERFLOW", ids))
    assert (record.table, record.op, record.key, record.key_before) == ("Account", "overflow", None, None)


def test_case_17_events_with_one_replay_id_are_distinguished_by_their_records() -> None:
    first, second = updated([ADA], Rating="Hot"), updated([BOB], Rating="Hot")
    records = Reading().decode(first, second._replace(replay_id=first.replay_id))
    assert [record.event_id for record in records] == [f"tx-1:1:Account:{one}:UPDATE" for one in (ADA, BOB)]
    assert records[0].order_key < records[1].order_key


def test_case_18_values_that_an_event_contains_without_a_bit_are_no_changes() -> None:
    bits = (1 << org.INDEX["Fax"]) + (1 << org.INDEX["LastModifiedDate"])
    extra = {"Rating": "Hot", "Sic": "7", "BillingAddress": {"Street": "s"}}
    known = Reading().after(event(changed=[f"0x{bits:X}"], Fax="1", LastModifiedDate=NOON_MS, **extra))
    assert known == {"Fax": "1", "LastModifiedDate": "2026-03-01T12:00:00Z"}


@pytest.mark.parametrize("kind", ["CREATE", "UPDATE", "DELETE", "UNDELETE"])
def test_case_21_a_gap_is_a_record_of_its_own_kind_and_changes_no_column(kind: str) -> None:
    records = Reading().decode(event(f"GAP_{kind}", [ADA, BOB]))
    assert [(r.op, r.key, r.key_before, r.after) for r in records] == [
        ("gap", f'["{one}"]', None, f'{{"change_type":"GAP_{kind}"}}') for one in (ADA, BOB)
    ]
    assert records[0].commit_ts == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("change", "op"), [("GAP_UPDATE", "gap"), ("GAP_OVERFLOW", "overflow"), ("DELETE", "delete")])
def test_an_event_whose_header_suffices_needs_no_readable_body(change: str, op: str) -> None:
    made = event(change)
    (record,) = Reading().decode(made._replace(payload=made.payload[:-5] + b"\xff"))
    assert record.op == op


def test_case_48_the_losers_of_a_merge_are_deleted_and_its_winner_and_children_updated() -> None:
    child = event("UPDATE", schema="contact-1", entity="Contact", seq=3, changed=["0x4"], Email="e")
    records = Reading(task("Account"), task("Contact")).decode(
        event("DELETE", [BOB, EVE], seq=1), updated([ADA], seq=2, Phone="1"), child
    )
    assert [(r.table, r.op, r.key_before) for r in records] == [
        ("Account", "delete", f'["{BOB}"]'),
        ("Account", "delete", f'["{EVE}"]'),
        ("Account", "update", f'["{ADA}"]'),
        ("Contact", "update", f'["{ADA}"]'),
    ]


def test_case_49_a_restored_record_has_all_its_values() -> None:
    (record,) = Reading().decode(event("UNDELETE", Name="Ada", OwnerId=ADA))
    assert (record.op, record.key) == ("upsert", f'["{ADA}"]')
    known = json.loads(record.after or "")
    assert (known["Name"], known["Phone"], known["IsDeleted"]) == ("Ada", None, False)


def test_case_49_a_restored_record_without_values_is_a_gap() -> None:
    (record,) = Reading().decode(event("UNDELETE"))
    assert (record.op, record.key) == ("gap", f'["{ADA}"]')


def test_case_51_the_name_of_an_account_is_a_text_or_the_parts_of_a_persons_name() -> None:
    (business,) = Reading().decode(updated(Name="Engines Ltd"))
    assert json.loads(business.after or "") == {
        "Id": ADA, "Name": "Engines Ltd", "LastName": None, "FirstName": None, "Salutation": None,
    }  # fmt: skip
    assert business.refetch == ()
    parts = {"Salutation": None, "FirstName": "Ada", "LastName": "King"}
    (person,) = Reading().decode(updated(Name=parts))
    assert json.loads(person.after or "") == {"Id": ADA, "LastName": "King", "FirstName": "Ada", "Salutation": None}
    assert person.refetch == ("Name",)


def test_case_51_a_changed_part_of_a_persons_name_changes_the_whole_name_too() -> None:
    changed = [f"{org.INDEX['Name']}-0x4"]
    (record,) = Reading().decode(event(changed=changed, Name={"FirstName": None, "LastName": "Byron"}))
    assert (json.loads(record.after or ""), record.refetch) == ({"Id": ADA, "LastName": "Byron"}, ("Name",))


def test_case_52_a_new_field_is_described_again_and_emitted(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = org.avro_schema("AccountChangeEvent", [*org.ACCOUNT_FIELDS, org.field("Tier__c")])
    monkeypatch.setitem(org.SCHEMAS, "account-2", grown)
    held = task("Account").schema
    reading = Reading(task("Account", held))
    assert [type(item) for item in reading.items(updated(Phone="1"))] == [TableSchema, ChangeRecord]
    account = org.DESCRIBES["Account"]
    more = {**account, "fields": [*account["fields"], org.described_field("Tier__c")]}
    reading.answers["Account"] = parse_description(more)
    bit = f"0x{1 << len(org.ACCOUNT_FIELDS) + 1:X}"
    schema, schema_record, row = reading.items(event(schema="account-2", changed=[bit], Tier__c="gold", seq=2))
    assert isinstance(schema, TableSchema) and schema.names == (*held.names, "Tier__c")
    assert isinstance(schema_record, ChangeRecord) and schema_record.op == "schema"
    assert isinstance(row, ChangeRecord) and json.loads(row.after or "") == {"Id": ADA, "Tier__c": "gold"}
    assert schema_record.order_key < row.order_key and row.schema_id == schema_record.schema_id == schema.schema_id
    assert reading.describes == ["Account", "Account"]
    assert reading.after(updated(Phone="2")) == {"Phone": "2"}, "older events may follow"


def described_with(**more: Any) -> ObjectSchema:
    """Account, whose field ``Score__c`` has other attributes."""
    account = org.DESCRIBES["Account"]
    fields = [{**one, **more} if one["name"] == "Score__c" else one for one in account["fields"]]
    return parse_description({**account, "fields": fields})


@pytest.mark.parametrize(
    ("digits", "value", "text"),
    [({"scale": 4}, 40.2512, "40.2512"), ({"precision": 14}, 1234567890.125, "1234567890.125")],
)
def test_a_value_with_more_digits_than_described_is_described_again(
    digits: dict[str, int], value: float, text: str
) -> None:
    """The schema of events does not contain the digits of a field."""
    reading = Reading(task("Account", task("Account").schema))
    reading.items(updated(Phone="1"))
    reading.answers["Account"] = described_with(**digits)
    schema, schema_record, row = reading.items(updated(Score__c=value, seq=2))
    assert isinstance(schema, TableSchema) and isinstance(schema_record, ChangeRecord)
    assert schema.column("Score__c") == described_with(**digits).schema.column("Score__c")
    assert isinstance(row, ChangeRecord) and json.loads(row.after or "") == {"Id": ADA, "Score__c": text}
    assert row.schema_id == schema.schema_id and schema_record.order_key < row.order_key
    assert reading.describes == ["Account", "Account"]


def test_digits_that_salesforce_keeps_and_does_not_show_are_rounded() -> None:
    reading = Reading()
    assert reading.after(updated(Score__c=40.2515)) == {"Score__c": "40.252"}
    assert reading.after(updated(Score__c=0.00049, seq=2)) == {"Score__c": "0.000"}
    assert reading.describes == ["Account", "Account"], "once for the column"
    assert reading.after(updated(AnnualRevenue=0.125, seq=3)) == {"AnnualRevenue": "0.13"}
    assert reading.describes == ["Account"] * 3


def test_a_field_of_another_type_under_the_same_name_is_described_again(monkeypatch: pytest.MonkeyPatch) -> None:
    retyped = [org.field("Score__c") if one["name"] == "Score__c" else one for one in org.ACCOUNT_FIELDS]
    monkeypatch.setitem(org.SCHEMAS, "account-2", org.avro_schema("AccountChangeEvent", retyped))
    reading = Reading()
    assert reading.after(updated(Score__c=1.5)) == {"Score__c": "1.500"}
    reading.answers["Account"] = described_with(type="string")
    bit = f"0x{1 << org.INDEX['Score__c']:X}"
    *_, row = reading.items(event(schema="account-2", changed=[bit], Score__c="high", seq=2))
    assert isinstance(row, ChangeRecord)
    assert (json.loads(row.after or ""), row.refetch) == ({"Id": ADA, "Score__c": "high"}, ())


def test_case_52_a_value_of_the_former_type_of_a_field_is_fetched() -> None:
    account = org.DESCRIBES["Account"]
    fields = [f for f in account["fields"] if f["name"] != "Founded__c"]
    fields.append(org.described_field("Founded__c", "datetime"))
    reading = Reading()
    reading.answers["Account"] = parse_description({**account, "fields": fields})
    (record,) = reading.decode(updated(Founded__c=0, Phone="1"))
    assert (json.loads(record.after or ""), record.refetch) == ({"Id": ADA, "Phone": "1"}, ("Founded__c",))


def test_case_53_permissions_of_a_user_are_true_where_their_name_is_listed() -> None:
    made = event("UPDATE", schema="user-1", entity="User", changed=["0x4"], UserPreferences=["DarkMode"])
    known = Reading(task("User")).after(made)
    assert known == {"UserPreferencesDarkMode": True, "UserPreferencesSounds": False}


def test_case_54_required_values_that_a_create_event_lacks_are_fetched() -> None:
    (record,) = Reading().decode(event("CREATE", Name="Ada", OwnerId=ADA, Active__c=True))
    assert record.refetch == ("CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById")
    known = json.loads(record.after or "")
    assert not known.keys() & set(record.refetch)
    assert known["Type"] is None, "a column that may be NULL is NULL"


def test_case_55_ids_of_15_characters_become_ids_of_18() -> None:
    (record,) = Reading().decode(updated(["0015000000VALDt"], Phone="1"))
    assert record.key == '["0015000000VALDtAAP"]'


@pytest.mark.parametrize("change", ["GAP_UPDATE", "GAP_DELETE"])
def test_a_gap_without_record_ids_is_an_overflow(change: str) -> None:
    (record,) = Reading().decode(event(change, []))
    assert (record.op, record.key) == ("overflow", None)


def test_an_asterisk_decides_before_unreadable_fields() -> None:
    made = event("UPDATE", ["001*"], changed=["0x2"], Name="x")
    (record,) = Reading().decode(made._replace(payload=made.payload[:-1]))
    assert record.op == "overflow"


def test_objects_that_are_not_copied_are_counted() -> None:
    made = event("UPDATE", [ADA, BOB], schema="contact-1", entity="Contact", changed=["0x2"])
    assert Reading().items(made) == [Ignored(2, "Contact")]


def test_an_update_of_columns_that_are_not_copied_is_counted() -> None:
    reading = Reading(task("Account", columns=org.without("Phone")))
    assert reading.items(updated([ADA, BOB], Phone="1"))[1:] == [Ignored(2)]


def test_case_19_and_20_a_text_sent_as_a_diff_is_fetched() -> None:
    bit = f"0x{1 << org.INDEX['Description']:X}"
    (record,) = Reading().decode(event(changed=[bit], diffs=[bit], Description="--- \n+++ 00\n@@ -1,1 +1,1 @@\n-a\n+b"))
    assert (json.loads(record.after or ""), record.refetch) == ({"Id": ADA}, ("Description",))


def test_a_field_listed_only_as_nulled_is_null_if_its_value_agrees() -> None:
    bit = f"0x{1 << org.INDEX['Phone']:X}"
    assert Reading().after(event(nulled=[bit])) == {"Phone": None}
    (record,) = Reading().decode(event(nulled=[bit], Phone="1"))
    assert record.refetch == ("Phone",)


def test_members_listed_only_as_nulled_are_null_and_other_members_unchanged() -> None:
    assert Reading().after(event(nulled=[STREET], BillingAddress={"City": "Turin"})) == {"BillingStreet": None}
    (record,) = Reading().decode(event(nulled=[f"0x{1 << org.INDEX['BillingAddress']:X}"]))
    assert len(record.refetch) == 10 and json.loads(record.after or "") == {"Id": ADA}


def test_a_compound_field_that_changed_as_a_whole_changes_all_its_columns() -> None:
    known = Reading().after(updated(BillingAddress={"Street": "s", "City": "c"}))
    assert known.pop("BillingStreet") == "s" and known.pop("BillingCity") == "c"
    assert set(known) == {f"Billing{m}" for m in ("State", "PostalCode", "Country", "StateCode", "CountryCode")} | {
        "BillingLatitude", "BillingLongitude", "BillingGeocodeAccuracy",
    }  # fmt: skip
    assert set(known.values()) == {None}


def test_a_created_record_is_an_upsert_without_the_columns_that_events_lack() -> None:
    row = {"Name": "Ada", "OwnerId": ADA, "CreatedById": ADA, "LastModifiedById": ADA, "Active__c": False}
    (record,) = Reading().decode(event("CREATE", CreatedDate=NOON_MS, LastModifiedDate=NOON_MS, **row))
    assert (record.op, record.after_complete, record.refetch) == ("upsert", False, ())
    unknown = set(task("Account").schema.names) - json.loads(record.after or "").keys()
    assert unknown == {"SystemModstamp", "MasterRecordId"}


def test_a_record_with_every_column_known_is_complete() -> None:
    reading = Reading(task("Invoice__c", columns=org.without("Total__c")))
    made = event("CREATE", schema="invoice-1", entity="Invoice__c", Name="I-1", Amount__c=0.1)
    (record,) = reading.decode(made)
    assert (record.after, record.after_complete) == (f'{{"Id":"{ADA}","Name":"I-1","Amount__c":"0.10"}}', True)


def test_columns_have_the_order_of_the_table_whatever_the_events() -> None:
    names = list(Reading().after(updated(Score__c=1.0, Phone="1", Name="x", Type="t")))
    order = task("Account").schema.names
    assert names == sorted(names, key=order.index)


def test_a_nul_in_a_text_is_a_character() -> None:
    (record,) = Reading().decode(updated(Phone="1\0 2"))
    assert (json.loads(record.after or "")["Phone"], record.warnings) == ("1\0 2", ())


def test_a_schema_is_emitted_once_before_the_first_record() -> None:
    reading = Reading()
    first, second = reading.items(updated(Phone="1")), reading.items(updated(Phone="2"))
    assert first[0] == task("Account").schema
    assert not any(isinstance(item, TableSchema) for item in second)


def test_a_schema_that_differs_from_the_target_is_emitted_as_a_change() -> None:
    now = task("Account").schema
    old = replace(now, columns=tuple(c for c in now.columns if c.name != "Sic"))
    assert [r.op for r in Reading(task("Account", old)).decode(updated(Phone="1"))] == ["schema", "update"]
    wide = replace(now.column("Phone"), type=LogicalType(Kind.DATE))
    old = replace(now, columns=tuple(wide if c.name == "Phone" else c for c in now.columns))
    assert [r.op for r in Reading(task("Account", old)).decode(updated(Phone="1"))] == ["schema", "update"]
    assert [r.op for r in Reading(task("Account", now)).decode(updated(Phone="1"))] == ["update"]


def test_a_table_is_not_described_before_an_event_needs_it() -> None:
    reading = Reading(task("Account"), task("Contact"))
    reading.items(updated(Phone="1"), updated(Phone="2"))
    assert reading.describes == ["Account"]


def test_case_13_a_commit_time_is_kept_and_does_not_order_changes() -> None:
    late = updated(Phone="1", seq=1)
    early = event(changed=["0x80"], Phone="2", seq=2, at_ms=NOON_MS - 1000)
    first, second = Reading().decode(late, early)
    assert first.order_key < second.order_key
    assert first.commit_ts and second.commit_ts and first.commit_ts - second.commit_ts == timedelta(seconds=1)
