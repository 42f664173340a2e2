"""The events that the sandbox org makes of a transaction, and the state of its ledger."""

from __future__ import annotations

import hashlib

import pytest

from airflow_cdc_provider.sandbox.salesforce import fields
from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from tests.connectors.salesforce_bus import ReceivedEvent, published


@pytest.fixture
def org() -> OrgState:
    """An org whose clock stands still."""
    org = OrgState()
    org.clock.freeze()
    return org


def account(org: OrgState, **values: object) -> str:
    """An account without an event."""
    return org.load("Account", [{"Name": "Acme", **values}])[0]


def only(org: OrgState) -> ReceivedEvent:
    (event,) = published(org)
    return event


def test_a_new_record_is_sent_complete_without_bitmaps(org: OrgState) -> None:
    with org.transaction() as tx:
        key = tx.insert("Account", {"Name": " Acme ", "BillingCity": "Ulm", "AnnualRevenue": "12.4", "Phone": ""})
    event = only(org)
    assert (event.kind, event.ids, event.changed) == ("CREATE", [key], [])
    assert event.body["Name"] == "Acme"
    assert event.body["BillingAddress"]["City"] == "Ulm"
    assert event.body["AnnualRevenue"] == 12.0
    assert event.body["CreatedDate"] == milliseconds(org.clock.second())
    assert "Phone" not in event.body
    assert event.body["Age_Days__c"] == 0.0
    assert event.header["commitUser"] == org.writer.id
    assert event.header["sequenceNumber"] == 1
    assert event.header["commitNumber"] > 2**53


def test_an_update_sends_changed_fields_and_which_of_them_became_null(org: OrgState) -> None:
    key = account(org, Phone="1", Industry="Energy", ShippingStreet="Old")
    org.clock.advance(5)
    with org.transaction() as tx:
        tx.update("Account", key, {"Phone": None, "Rating": "Hot", "Industry": "Energy", "ShippingStreet": "New"})
    event = only(org)
    assert event.changed == ["Phone", "Rating", "LastModifiedDate", "ShippingAddress.Street"]
    assert event.nulled == ["Phone"]
    assert event.body["ShippingAddress"]["Street"] == "New"
    assert "Industry" not in event.body
    assert event.body["LastModifiedDate"] == milliseconds(org.clock.second())


def test_an_update_without_changes_sends_nothing(org: OrgState) -> None:
    key = account(org, Phone="1")
    with org.transaction() as tx:
        tx.update("Account", key, {"Phone": "1"})
    assert published(org) == []


def test_changes_by_the_org_itself_may_have_nested_bitmaps_only(org: OrgState) -> None:
    key = account(org)
    with org.transaction() as tx:
        tx.update("Account", key, {"ShippingLatitude": 48.4, "ShippingLongitude": 10.0}, system=True)
    event = only(org)
    assert event.header["changedFields"] == ["6-0x0180"]
    assert event.header["changeOrigin"] == ""
    assert org.ledger.state("Account")[key]["ShippingLatitude"] == 48.4


def test_of_a_custom_geolocation_both_parts_are_sent(org: OrgState) -> None:
    (key,) = org.load("Invoice__c", [{"Place__Latitude__s": 1.0, "Place__Longitude__s": 2.0}])
    with org.transaction() as tx:
        tx.update("Invoice__c", key, {"Place__Latitude__s": 5.0})
    assert only(org).body["Place__c"] == {"Latitude": 5.0, "Longitude": 2.0}
    assert set(only(org).changed) == {"LastModifiedDate", "Place__c.Latitude", "Place__c.Longitude"}


def test_several_changes_of_a_record_are_one_event_of_the_first_kind_with_the_last_values(org: OrgState) -> None:
    with org.transaction() as tx:
        key = tx.insert("Account", {"Name": "A"})
        tx.update("Account", key, {"Name": "B"})
    assert (only(org).kind, only(org).body["Name"]) == ("CREATE", "B")


def test_without_coalescing_a_transaction_may_send_two_events_of_a_record(org: OrgState) -> None:
    key = account(org)
    with org.transaction(coalesce=False) as tx:
        tx.update("Account", key, {"Phone": "1"})
        tx.update("Account", key, {"Rating": "Hot"})
    events = published(org)
    assert [event.header["sequenceNumber"] for event in events] == [1, 2]
    assert len({event.header["transactionKey"] for event in events}) == 1


def test_a_delete_after_an_update_is_never_dropped(org: OrgState) -> None:
    key = account(org)
    with org.transaction() as tx:
        tx.update("Account", key, {"Phone": "1"})
        tx.delete("Account", key)
    assert [event.kind for event in published(org)] == ["UPDATE", "DELETE"]
    assert published(org)[1].body == {}


def test_the_same_change_of_several_records_is_one_event(org: OrgState) -> None:
    keys = org.load("Account", [{"Name": str(number)} for number in range(5)])
    with org.transaction() as tx:
        tx.update_many("Account", keys[:3], {"Rating": "Hot"})
        tx.update("Account", keys[3], {"Rating": "Cold"})
    assert [event.ids for event in published(org)] == [keys[:3], [keys[3]]]


def test_changes_of_different_seconds_are_not_merged(org: OrgState) -> None:
    keys = org.load("Account", [{"Name": "A"}, {"Name": "B"}])
    with org.transaction() as tx:
        tx.update("Account", keys[0], {"Rating": "Hot"})
        org.clock.advance(1)
        tx.update("Account", keys[1], {"Rating": "Hot"})
    first, second = published(org)
    assert second.header["commitTimestamp"] - first.header["commitTimestamp"] == 1000
    assert first.header["commitNumber"] == second.header["commitNumber"]


def test_objects_that_are_not_captured_leave_holes_in_the_sequence(org: OrgState) -> None:
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "A"})
        tx.insert("Task", {"Subject": "call"})
        tx.insert("Account", {"Name": "B"})
    assert [event.header["sequenceNumber"] for event in published(org)] == [1, 3]


def test_long_text_is_sent_as_a_diff_under_the_hash_of_the_new_value(org: OrgState) -> None:
    lines = [f"line {number} of a description" for number in range(60)]
    key = account(org, Description="\r\n".join(lines))
    lines[7] = "another line"
    new = "\r\n".join(lines)
    with org.transaction() as tx:
        tx.update("Account", key, {"Description": new})
    event = only(org)
    assert event.diffs == ["Description"] and "Description" in event.changed
    assert event.body["Description"].split("\n")[1] == f"+++ {hashlib.sha256(new.encode()).hexdigest()}"
    assert org.ledger.state("Account")[key]["Description"] == new


def test_an_event_of_more_than_a_megabyte_is_a_gap_event(org: OrgState) -> None:
    org.change_field("Account", fields.area("Essay__c", 2_000_000))
    key = account(org)
    with org.transaction() as tx:
        tx.update("Account", key, {"Essay__c": "x" * 1_000_001})
    event = only(org)
    assert (event.kind, event.ids, event.body) == ("GAP_UPDATE", [key], {})
    assert event.header["changeOrigin"] == ""


def test_gaps_are_sent_for_a_transaction_or_on_their_own(org: OrgState) -> None:
    key = account(org)
    with org.transaction(as_gap=True) as tx:
        tx.delete("Account", key)
    org.gap("Contact", ["0035g0000000009AAA"], "GAP_CREATE")
    assert [(event.kind, event.header["entityName"]) for event in published(org)] == [
        ("GAP_DELETE", "Account"),
        ("GAP_CREATE", "Contact"),
    ]
    assert published(org)[1].header["transactionKey"] not in {commit.transaction_key for commit in org.ledger.commits}


def test_beyond_the_threshold_each_object_gets_one_overflow_event(org: OrgState) -> None:
    org.rules = Rules(overflow=4, merge=False)
    keys = org.load("Account", [{"Name": str(number)} for number in range(4)])
    with org.transaction() as tx:
        for key in keys:
            tx.update("Account", key, {"Phone": key, "Rating": "Hot"})
        tx.insert("Contact", {"LastName": "Doe"})
        tx.insert("Contact", {"LastName": "Roe"})
    assert [(event.kind, event.header["entityName"]) for event in published(org)] == [
        ("UPDATE", "Account"),
        ("UPDATE", "Account"),
        ("GAP_OVERFLOW", "Account"),
        ("GAP_OVERFLOW", "Contact"),
    ]
    assert published(org)[2].ids == ["000000000000000AAA"]
    assert {row["Rating"] for row in org.ledger.state("Account").values()} == {"Hot"}


def test_a_deleted_parent_deletes_its_children_and_restores_them(org: OrgState) -> None:
    key = account(org)
    contacts = org.load("Contact", [{"LastName": name, "AccountId": key} for name in ("A", "B")])
    with org.transaction() as tx:
        tx.delete("Account", key)
    assert [(event.kind, event.ids) for event in published(org)] == [("DELETE", [key]), ("DELETE", contacts)]
    assert org.ledger.state("Contact") == {}
    with org.transaction() as tx:
        tx.undelete("Account", key)
    back = published(org)[2:]
    assert [event.kind for event in back] == ["UNDELETE"] * 3
    assert back[0].body["Name"] == "Acme"
    assert set(org.ledger.state("Contact")) == set(contacts)


def test_a_hard_delete_sends_no_event(org: OrgState) -> None:
    key = account(org)
    with org.transaction() as tx:
        tx.delete("Account", key)
    with org.transaction() as tx:
        tx.purge("Account", key)
    assert [event.kind for event in published(org)] == ["DELETE"]
    assert org.ledger.rows("Account", everything=True) == {}


def test_the_recycle_bin_is_emptied_after_15_days(org: OrgState) -> None:
    key = account(org)
    with org.transaction() as tx:
        tx.delete("Account", key)
    org.clock.advance(14 * 86_400)
    org.empty_bin()
    assert set(org.ledger.rows("Account", everything=True)) == {key}
    org.clock.advance(2 * 86_400)
    org.empty_bin()
    assert org.ledger.rows("Account", everything=True) == {}


def test_a_merge_deletes_the_loser_and_moves_its_children(org: OrgState) -> None:
    winner, loser = account(org), account(org)
    (contact,) = org.load("Contact", [{"LastName": "Doe", "AccountId": loser}])
    with org.transaction() as tx:
        tx.merge("Account", winner, loser, values={"Phone": "9"})
    sent = [(event.kind, event.ids[0]) for event in published(org)]
    assert sent == [("UPDATE", contact), ("DELETE", loser), ("UPDATE", winner)]
    assert org.ledger.state("Account", everything=True)[loser]["MasterRecordId"] == winner
    assert org.ledger.state("Contact")[contact]["AccountId"] == winner


def test_a_person_account_is_sent_as_account_and_as_contact(org: OrgState) -> None:
    with org.transaction() as tx:
        key = tx.insert("Account", {"FirstName": "Ada", "LastName": "Byron", "PersonEmail": "ada@example.org"})
    created = published(org)
    assert [event.header["entityName"] for event in created] == ["Account", "Contact"]
    assert created[0].body["Name"]["LastName"] == "Byron"
    assert created[0].body["PersonContactId"] == created[1].ids[0]
    org.clock.advance(1)
    with org.transaction() as tx:
        tx.update("Account", key, {"LastName": "King"})
    changed = published(org)[2:]
    assert [event.changed for event in changed] == [["LastModifiedDate", "Name.LastName"]] * 2
    assert org.ledger.state("Account")[key]["Name"] == "Ada King"


def test_events_keep_the_schema_they_were_written_with(org: OrgState) -> None:
    key = account(org)
    with org.transaction() as tx:
        tx.update("Account", key, {"Phone": "1"})
    org.change_field("Account", fields.text("Nick__c", 40))
    with org.transaction() as tx:
        tx.update("Account", key, {"Nick__c": "Ac"})
    before, after = published(org)
    assert before.schema_id != after.schema_id
    assert before.changed == ["Phone", "LastModifiedDate"]
    assert after.changed == ["LastModifiedDate", "Nick__c"]


def test_an_object_may_change_during_an_open_transaction(org: OrgState) -> None:
    key = account(org)
    opened = org.transaction()
    made = opened.insert("Account", {"Name": "B"})
    opened.update("Account", key, {"Phone": "1"})
    org.change_field("Account", fields.text("Nick__c", 40))
    opened.update("Account", made, {"Nick__c": "Bee"})
    opened.update("Account", key, {"Nick__c": "Ac"})
    opened.commit()
    created, updated = published(org)
    assert (created.kind, created.body["Nick__c"]) == ("CREATE", "Bee")
    assert updated.changed == ["Phone", "LastModifiedDate", "Nick__c"]
    assert {row["Nick__c"] for row in org.ledger.state("Account").values()} == {"Bee", "Ac"}


def test_an_incompatible_conversion_empties_the_column_and_is_sent_once_for_the_object(org: OrgState) -> None:
    key = account(org, Regions__c="EMEA;APAC")
    org.convert_field("Account", fields.text("Regions__c", 80))
    assert (only(org).kind, only(org).ids) == ("GAP_UPDATE", ["001*"])
    assert org.ledger.state("Account")[key]["Regions__c"] is None


def test_an_archived_task_is_sent_like_a_deleted_one_but_still_exists(org: OrgState) -> None:
    org.channels.selected.append(type(org.channels.selected[0])("Task"))
    (key,) = org.load("Task", [{"Subject": "call"}])
    org.archive("Task", [key])
    assert (only(org).kind, only(org).ids) == ("GAP_DELETE", [key])
    assert org.ledger.state("Task") == {}
    assert org.ledger.state("Task", everything=True)[key]["IsArchived"] is True


def test_formulas_change_with_the_clock_without_an_event(org: OrgState) -> None:
    key = account(org)
    org.clock.advance(3 * 86_400)
    assert org.ledger.state("Account", now=org.clock.second())[key]["Age_Days__c"] == 3.0
    assert published(org) == []


def test_a_late_commit_adds_rows_older_than_those_already_seen(org: OrgState) -> None:
    late = org.transaction()
    older = late.insert("Account", {"Name": "older"})
    org.clock.advance(600)
    with org.transaction() as tx:
        newer = tx.insert("Account", {"Name": "newer"})
    assert set(org.ledger.state("Account")) == {newer}
    org.clock.advance(600)
    late.commit()
    rows = org.ledger.state("Account")
    assert rows[older]["SystemModstamp"] < rows[newer]["SystemModstamp"]
    assert [event.body["Name"] for event in published(org)] == ["newer", "older"]
    assert published(org)[1].header["commitTimestamp"] < published(org)[0].header["commitTimestamp"]


def test_a_record_in_an_open_transaction_cannot_be_changed_by_another(org: OrgState) -> None:
    key = account(org)
    first = org.transaction()
    first.update("Account", key, {"Phone": "1"})
    second = org.transaction()
    with pytest.raises(ApiError, match="UNABLE_TO_LOCK_ROW"):
        second.update("Account", key, {"Phone": "2"})
    first.rollback()
    second.update("Account", key, {"Phone": "2"})
    second.commit()
    assert org.ledger.state("Account")[key]["Phone"] == "2"
    assert org.transactions == {}


def test_the_ledger_has_the_state_after_every_commit(org: OrgState) -> None:
    key = account(org, Phone="0")
    start = org.ledger.last
    for phone in ("1", "2"):
        org.clock.advance(60)
        with org.transaction() as tx:
            tx.update("Account", key, {"Phone": phone})
    with org.transaction() as tx:
        tx.delete("Account", key)
    phones = [org.ledger.state("Account", start + step).get(key, {}).get("Phone") for step in range(4)]
    assert phones == ["0", "1", "2", None]
    assert org.ledger.at(org.clock.now_ms() - 30_000) == start + 1


def test_a_lost_event_is_in_the_ledger_only(org: OrgState) -> None:
    org.faults.lose_events = 1
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "A"})
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "B"})
    assert [event.body["Name"] for event in published(org)] == ["B"]
    assert len(org.ledger.state("Account")) == 2


@pytest.mark.parametrize(
    ("name", "values", "code"),
    [
        ("Nothing", {}, "INVALID_TYPE"),
        ("Account", {"Nothing": 1}, "INVALID_FIELD"),
        ("Account", {"Phone": "1"}, "REQUIRED_FIELD_MISSING"),
        ("Account", {"Name": "x" * 256}, "STRING_TOO_LONG"),
        ("Account", {"Name": "A", "SystemModstamp": "2026-01-01T00:00:00Z"}, "INVALID_FIELD_FOR_INSERT_UPDATE"),
        ("Account", {"Name": "A", "NumberOfEmployees": "many"}, "INVALID_TYPE_ON_FIELD_IN_RECORD"),
        ("Invoice__c", {"Discount__c": 1000}, "NUMBER_OUTSIDE_VALID_RANGE"),
    ],
)
def test_a_record_that_a_real_org_refuses_is_refused(
    org: OrgState, name: str, values: dict[str, object], code: str
) -> None:
    with pytest.raises(ApiError) as refusal, org.transaction() as tx:
        tx.insert(name, values)
    assert refusal.value.code == code
    assert org.transactions == {} and org.store.holders == {}
