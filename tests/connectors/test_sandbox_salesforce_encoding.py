"""How the sandbox org writes events: bitmaps, Avro, diffs, ids, compared with recorded events of real orgs."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import fastavro
import pytest

from airflow_cdc_provider.sandbox.salesforce.bitmaps import bitmap, field_bitmaps
from airflow_cdc_provider.sandbox.salesforce.catalog import catalog
from airflow_cdc_provider.sandbox.salesforce.event_schema import EventSchema
from airflow_cdc_provider.sandbox.salesforce.ids import full, record_id
from airflow_cdc_provider.sandbox.salesforce.textdiff import text_diff

OBJECTS = {one.name: one for one in catalog()}
HEADER = {
    "entityName": "Account",
    "recordIds": ["0015g0000000001AAA", "0015g0000000002AAA"],
    "changeType": "UPDATE",
    "changeOrigin": "com/salesforce/api/rest/66.0;client=é",
    "transactionKey": "0003ab35-83b4-1ba5-b0d3-6f5a1e0e9a4c",
    "sequenceNumber": 3,
    "commitTimestamp": 1_772_105_613_000,
    "commitNumber": 1_000_000_000_000_000_123,
    "commitUser": "0055g0000000001AAA",
    "nulledFields": [],
    "diffFields": ["0x010000"],
    "changedFields": ["0x410000", "4-0x01"],
}


@pytest.mark.parametrize(
    ("top", "nested", "written"),
    [
        ([11, 22], {}, ["0x400800"]),
        ([22], {4: [0]}, ["0x400000", "4-0x01"]),
        ([7, 22], {}, ["0x400080"]),
        ([2, 22], {}, ["0x400004"]),
        ([16], {}, ["0x010000"]),
        ([16, 22], {}, ["0x410000"]),
        ([12, 19, 20, 21, 22, 23, 27], {}, ["0x08F81000"]),
        ([23], {6: [0]}, ["0x800000", "6-0x01"]),
        ([], {6: [7, 8]}, ["6-0x0180"]),
        ([23, 68], {}, ["0x100000000000800000"]),
        ([1, 23], {}, ["0x800002"]),
        ([23], {}, ["0x800000"]),
        ([58], {}, ["0x0400000000000000"]),
        ([], {}, []),
    ],
)
def test_changed_fields_are_written_as_in_recorded_events(
    top: list[int], nested: dict[int, list[int]], written: list[str]
) -> None:
    assert field_bitmaps(top, nested) == written


def test_a_bitmap_has_whole_bytes_in_upper_case() -> None:
    assert [bitmap((position,)) for position in (0, 7, 8, 11, 63, 64)] == [
        "0x01",
        "0x80",
        "0x0100",
        "0x0800",
        "0x8000000000000000",
        "0x010000000000000000",
    ]


def test_fields_of_an_account_have_the_positions_of_a_real_org_of_api_66() -> None:
    names = [field["name"] for field in json.loads(EventSchema(OBJECTS["Account"]).json)["fields"]]
    positions = {"ChangeEventHeader": 0, "Name": 1, "Type": 2, "RecordTypeId": 3, "BillingAddress": 5}
    positions |= {"ShippingAddress": 6, "Phone": 7, "Industry": 12, "Description": 17, "LastModifiedDate": 23}
    assert {name: names.index(name) for name in positions} == positions


def test_named_types_are_defined_once_and_referred_to_after_that() -> None:
    fields = {field["name"]: field for field in json.loads(EventSchema(OBJECTS["Account"]).json)["fields"]}
    assert fields["BillingAddress"]["type"][1]["name"] == "Address"
    assert [member["name"] for member in fields["BillingAddress"]["type"][1]["fields"]] == [
        "Street",
        "City",
        "State",
        "PostalCode",
        "Country",
        "StateCode",
        "CountryCode",
        "Latitude",
        "Longitude",
        "GeocodeAccuracy",
    ]
    assert fields["ShippingAddress"]["type"] == ["null", "Address"]
    assert fields["Name"]["type"][1] == "string"
    assert fields["Name"]["type"][2]["name"] == "Switchable_PersonName"
    assert fields["CreatedDate"]["doc"] == "CreatedDate:DateTime"
    assert fields["OwnerId"]["doc"] == "ForeignKey:EntityId"
    assert fields["Amount_Owed__c"]["doc"].startswith("Data:Currency:00N")


def test_events_never_contain_internal_fields_of_the_org() -> None:
    for one in OBJECTS.values():
        names = {field["name"] for field in json.loads(EventSchema(one).json)["fields"]}
        assert names.isdisjoint({"Id", "IsDeleted", "SystemModstamp", "MasterRecordId", "LastActivityDate", "Body"})


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("Account", {}),
        ("Account", {"Name": "Ærø", "BillingAddress": {"Street": "a\r\nb", "Latitude": -1.5}, "AnnualRevenue": 1e7}),
        ("Account", {"Name": {"FirstName": None, "LastName": "Doe", "Salutation": "Ms."}, "NumberOfEmployees": -3}),
        ("Contact", {"Name": {"LastName": "Doe"}, "DoNotCall": False, "Birthdate": -86_400_000}),
        ("Invoice__c", {"Place__c": {"Latitude": 1.0, "Longitude": 2.0}, "Letter__c": "x" * 100_000, "Paid__c": True}),
    ],
)
def test_our_bytes_equal_those_of_a_general_avro_writer(name: str, body: dict[str, Any]) -> None:
    schema = EventSchema(OBJECTS[name])
    parsed = fastavro.parse_schema(json.loads(schema.json))
    expected = io.BytesIO()
    fastavro.schemaless_writer(expected, parsed, {"ChangeEventHeader": HEADER, **body})
    written = schema.encode(HEADER, body)
    assert written == expected.getvalue()
    read: Any = fastavro.schemaless_reader(io.BytesIO(written), parsed, None)
    assert read["ChangeEventHeader"] == HEADER


def test_a_schema_id_is_a_fingerprint_of_the_definition() -> None:
    account = OBJECTS["Account"]
    wider = account.with_field(OBJECTS["Contact"].by_name["Languages__c"])
    assert EventSchema(wider).id != EventSchema(account).id
    assert EventSchema(wider.without_field("Languages__c")).id == EventSchema(account).id


def test_a_diff_contains_the_hash_of_the_new_text_and_no_context() -> None:
    lines = [f"line {number} of a text that is long enough" for number in range(40)]
    old = "\r\n".join(lines)
    lines[1:2] = ["changed"]
    lines.insert(30, "inserted")
    new = "\r\n".join(lines)
    diff = text_diff(old, new)
    assert diff is not None
    assert diff.split("\n") == [
        "--- ",
        f"+++ {hashlib.sha256(new.encode()).hexdigest()}",
        "@@ -2,1 +2,1 @@",
        "-line 1 of a text that is long enough",
        "+changed",
        "@@ -30,0 +31,1 @@",
        "+inserted",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("short", "shorter"),
        ("a\n" * 600, "a\n" * 599 + "b\n" + "c" * 700),
        ("\n".join(f"{n} lines" for n in range(300)), "\n".join(f"{n // 2} lines" for n in range(300))),
        ("a\nb\r\n" * 400, "a\nb\r\n" * 399 + "c\n"),
    ],
    ids=["short", "grown by more than half", "too many lines", "two styles of line ends"],
)
def test_a_text_is_sent_whole_where_a_diff_is_unsuitable(old: str, new: str) -> None:
    assert text_diff(old, new) is None


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("001D000000IqhSL", "001D000000IqhSLIAZ"),
        ("00D5g000009lLrx", "00D5g000009lLrxEAE"),
        ("000000000000000", "000000000000000AAA"),
        ("a0BZZZZZZZZZZZZ", "a0BZZZZZZZZZZZZ255"),
    ],
)
def test_an_id_of_15_characters_has_one_form_of_18(short: str, whole: str) -> None:
    assert full(short) == whole
    assert full(whole) == whole


def test_ids_grow_with_their_numbers() -> None:
    numbers = [1, 9, 61, 62, 3_843, 3_844, 10_000_000]
    assert sorted(record_id("001", number) for number in numbers) == [record_id("001", number) for number in numbers]
