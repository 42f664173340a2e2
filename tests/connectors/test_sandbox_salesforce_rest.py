"""The sandbox org for a REST client: tokens, describe, queries, records, permissions, ordered faults."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg, fields
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from airflow_cdc_provider.sandbox.salesforce.users import Access
from tests.connectors.salesforce_rest import Client, V, refusal

pytestmark = pytest.mark.server


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


@pytest.fixture
def client(org: SalesforceOrg) -> Iterator[Client]:
    with Client(org) as client:
        yield client


def names(client: Client, condition: str, name: str = "Account") -> list[str]:
    answer = client.query(f"SELECT Name FROM {name} {condition}")
    assert answer.status_code == 200, answer.text
    return [record["Name"] for record in answer.json()["records"]]


def test_describe_has_types_scales_parts_and_formulas(client: Client) -> None:
    described = {field["name"]: field for field in client.get(f"{V}/sobjects/Invoice__c/describe").json()["fields"]}
    shown = {name: (described[name]["type"], described[name]["scale"]) for name in ("Amount__c", "Quantity__c")}
    assert shown == {"Amount__c": ("currency", 2), "Quantity__c": ("double", 6)}
    assert described["Net__c"]["calculated"] is True
    assert described["Name"]["autoNumber"] is True
    assert described["Place__Latitude__s"]["compoundFieldName"] == "Place__c"
    assert described["Account__c"]["referenceTo"] == ["Account"]
    assert described["Letter__c"]["htmlFormatted"] is True
    names = {one["name"] for one in client.get(f"{V}/sobjects").json()["sobjects"]}
    assert {"Account", "Invoice__c", "AccountChangeEvent", "Invoice__ChangeEvent"} <= names


def test_describe_of_an_event_lists_the_fields_that_this_user_receives(org: SalesforceOrg, client: Client) -> None:
    org.integration.hidden.add(("Account", "Phone"))
    names = [field["name"] for field in client.get(f"{V}/sobjects/AccountChangeEvent/describe").json()["fields"]]
    assert "Industry" in names and "Phone" not in names
    assert refusal(client.get(f"{V}/sobjects/TaskChangeEvent/describe")) == (404, "NOT_FOUND")


def test_objects_differ_in_how_they_can_be_read(client: Client) -> None:
    found = {one["name"]: one for one in client.get(f"{V}/sobjects").json()["sobjects"]}
    assert (found["ActivityHistory"]["queryable"], found["LoginHistory"]["queryable"]) == (False, True)
    assert refusal(client.query("SELECT Id FROM ActivityHistory")) == (400, "INVALID_TYPE_FOR_OPERATION")
    times = {}
    for name in ("Account", "AccountHistory", "LoginHistory", "UserPreference"):
        described = client.get(f"{V}/sobjects/{name}/describe").json()["fields"]
        times[name] = {field["name"] for field in described if field["type"] == "datetime"}
    assert "SystemModstamp" in times["Account"]
    assert times["AccountHistory"] == {"CreatedDate"}
    assert times["LoginHistory"] == {"LoginTime"}
    assert times["UserPreference"] == set()


def test_describe_reports_when_nothing_changed(org: SalesforceOrg, client: Client) -> None:
    path = f"{V}/sobjects/Account/describe"
    seen = {"If-Modified-Since": client.get(path).headers["Last-Modified"]}
    assert client.get(path, headers=seen).status_code == 304
    org.clock.advance(60)
    org.change_field("Account", fields.text("Nick__c", 40))
    assert client.get(path, headers=seen).status_code == 200


def test_values_have_the_form_of_rest(client: Client) -> None:
    sent = {"Name": "Acme", "BillingCity": "Ulm", "AnnualRevenue": 12}
    key = client.post(f"{V}/sobjects/Account", json=sent).json()["id"]
    record = client.get(f"{V}/sobjects/Account/{key}").json()
    assert record["attributes"] == {"type": "Account", "url": f"{V}/sobjects/Account/{key}"}
    assert record["BillingAddress"]["city"] == "Ulm" and record["ShippingAddress"] is None
    assert record["AnnualRevenue"] == 12.0 and record["IsDeleted"] is False
    assert record["CreatedDate"].endswith(".000+0000")


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("ORDER BY Name", ["alpha", "Beta", "gamma"]),
        ("WHERE Name = 'ALPHA'", ["alpha"]),
        ("WHERE Name LIKE '%a' ORDER BY Name DESC", ["gamma", "Beta", "alpha"]),
        ("WHERE Name LIKE '_eta'", ["Beta"]),
        ("WHERE Rating = null ORDER BY Name", ["Beta", "gamma"]),
        ("WHERE Rating != null", ["alpha"]),
        ("WHERE AnnualRevenue >= 2 AND NOT Name = 'gamma'", ["Beta"]),
        ("WHERE (AnnualRevenue = 1 OR AnnualRevenue = 3) ORDER BY AnnualRevenue DESC", ["gamma", "alpha"]),
        ("WHERE Name IN ('alpha','gamma') ORDER BY Name LIMIT 1", ["alpha"]),
        ("WHERE Name NOT IN ('alpha')  ORDER BY Name", ["Beta", "gamma"]),
        ("WHERE IsDeleted = false AND Regions__c INCLUDES ('EMEA;APAC', 'LATAM') ORDER BY Name", ["alpha", "gamma"]),
        ("ORDER BY Rating NULLS LAST, Name DESC LIMIT 2", ["alpha", "gamma"]),
        ("WHERE SystemModstamp >= 2000-01-01T00:00:00+02:00 ORDER BY Name OFFSET 2", ["gamma"]),
        ("WHERE SystemModstamp > 2999-01-01T00:00:00Z", []),
    ],
)
def test_soql_finds_the_requested_rows(org: SalesforceOrg, client: Client, condition: str, found: list[str]) -> None:
    org.load(
        "Account",
        [
            {"Name": "gamma", "AnnualRevenue": 3, "Regions__c": "LATAM"},
            {"Name": "alpha", "AnnualRevenue": 1, "Rating": "Hot", "Regions__c": "EMEA;APAC"},
            {"Name": "Beta", "AnnualRevenue": 2, "Regions__c": "EMEA"},
        ],
    )
    assert names(client, condition) == found


def test_text_in_soql_may_contain_quotes_and_backslashes(org: SalesforceOrg, client: Client) -> None:
    org.load("Account", [{"Name": "O'Brien \\ Sons"}])
    assert names(client, r"WHERE Name = 'O\'Brien \\ Sons'") == ["O'Brien \\ Sons"]


def test_counting_answers_without_records(org: SalesforceOrg, client: Client) -> None:
    org.load("Account", [{"Name": str(number)} for number in range(7)])
    answer = client.query("SELECT COUNT() FROM Account WHERE Name != '3'").json()
    assert answer == {"totalSize": 6, "done": True, "records": []}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT Id FROM", "MALFORMED_QUERY"),
        ("SELECT Id FROM Account WHERE Name ~ 1", "MALFORMED_QUERY"),
        ("SELECT Id FROM Account GROUP BY Id", "MALFORMED_QUERY"),
        ("SELECT Nothing FROM Account", "INVALID_FIELD"),
        ("SELECT Id FROM Nothing", "INVALID_TYPE"),
        ("SELECT Id FROM Account WHERE CreatedDate > '2026-01-01'", "INVALID_FIELD"),
        ("SELECT Id FROM Account WHERE Description = 'x'", "INVALID_FIELD"),
        ("SELECT Id FROM Account WHERE BillingAddress = null", "INVALID_FIELD"),
    ],
)
def test_a_query_that_a_real_org_refuses_is_refused(client: Client, text: str, code: str) -> None:
    assert refusal(client.query(text)) == (400, code)


def test_pages_do_not_change_and_their_locators_expire_after_two_days(org: SalesforceOrg, client: Client) -> None:
    keys = org.load("Account", [{"Name": f"{number:04}"} for number in range(450)])
    text = "SELECT Id, Name FROM Account ORDER BY Name"
    page = client.query(text, **{"Sforce-Query-Options": "batchSize=200"}).json()
    assert (page["totalSize"], page["done"], len(page["records"])) == (450, False, 200)
    with org.transaction() as tx:
        tx.update("Account", keys[300], {"Name": "changed"})
    more = client.get(page["nextRecordsUrl"]).json()
    assert more["records"][100]["Name"] == "0300"
    assert client.get(page["nextRecordsUrl"]).json() == more
    last = client.get(more["nextRecordsUrl"]).json()
    assert (last["done"], len(last["records"]), "nextRecordsUrl" in last) == (True, 50, False)
    org.clock.advance(2 * 86_400 + 60)
    client.log_in()
    assert refusal(client.get(page["nextRecordsUrl"])) == (400, "INVALID_QUERY_LOCATOR")


def test_deleted_and_archived_rows_are_in_query_all_only(org: SalesforceOrg, client: Client) -> None:
    keys = org.load("Task", [{"Subject": name} for name in ("open", "archived", "deleted")])
    org.archive("Task", [keys[1]])
    client.delete(f"{V}/sobjects/Task/{keys[2]}")
    text = "SELECT Id, IsDeleted, IsArchived FROM Task ORDER BY Id"
    assert [one["Id"] for one in client.query(text).json()["records"]] == keys[:1]
    flags = [(one["IsDeleted"], one["IsArchived"]) for one in client.query(text, "queryAll").json()["records"]]
    assert flags == [(False, False), (False, True), (True, False)]


def test_a_record_is_created_changed_and_deleted(org: SalesforceOrg, client: Client) -> None:
    answer = client.post(f"{V}/sobjects/Account", json={"Name": "A"})
    key = answer.json()["id"]
    assert (answer.status_code, answer.json()["success"]) == (201, True)
    assert client.patch(f"{V}/sobjects/Account/{key[:15]}", json={"Phone": "1"}).status_code == 204
    assert org.ledger.state("Account")[key]["Phone"] == "1"
    assert client.delete(f"{V}/sobjects/Account/{key}").status_code == 204
    assert refusal(client.get(f"{V}/sobjects/Account/{key}")) == (404, "ENTITY_IS_DELETED")
    assert refusal(client.post(f"{V}/sobjects/Account", json={})) == (400, "REQUIRED_FIELD_MISSING")
    assert refusal(client.post(f"{V}/sobjects/Account", data="{")) == (400, "JSON_PARSER_ERROR")
    assert refusal(client.get(f"{V}/sobjects/Account/001000000000000AAA")) == (404, "NOT_FOUND")


def test_an_upsert_uses_an_external_id(org: SalesforceOrg, client: Client) -> None:
    path = f"{V}/sobjects/Account/ERP_Number__c/E-1"
    made = client.patch(path, json={"Name": "A"})
    changed = client.patch(path, json={"Name": "B"})
    assert (made.status_code, changed.status_code) == (201, 200)
    assert org.ledger.state("Account")[made.json()["id"]]["Name"] == "B"
    assert refusal(client.patch(f"{V}/sobjects/Account/Phone/1", json={})) == (400, "NOT_FOUND")


def test_many_records_are_read_by_id_in_order_with_null_for_missing_ones(org: SalesforceOrg, client: Client) -> None:
    keys = org.load("Account", [{"Name": str(number)} for number in range(2000)])
    client.delete(f"{V}/sobjects/Account/{keys[1]}")
    ids = [keys[1], keys[2][:15], "001000000000000AAA", keys[0]]
    path = f"{V}/composite/sobjects/Account"
    found = client.post(path, json={"ids": ids, "fields": ["Name"]}).json()
    assert [one and one["Name"] for one in found] == [None, "2", None, "0"]
    assert len(client.post(path, json={"ids": keys, "fields": ["Id"]}).json()) == 2000
    assert refusal(client.post(path, json={"ids": [*keys, keys[0]], "fields": ["Id"]})) == (400, "EXCEEDED_ID_LIMIT")
    assert refusal(client.post(path, json={"ids": ids, "fields": ["Nothing"]})) == (400, "INVALID_FIELD")


def test_many_records_are_written_in_one_transaction(org: SalesforceOrg, client: Client) -> None:
    path = f"{V}/composite/sobjects"
    kind = {"attributes": {"type": "Account"}}
    made = client.post(path, json={"records": [kind | {"Name": "A"}, kind | {"Nme": "B"}, kind | {"Name": "C"}]}).json()
    assert [one["success"] for one in made] == [True, False, True]
    assert made[1]["errors"][0]["statusCode"] == "INVALID_FIELD"
    assert len({change.object for change in org.ledger.commits[-1].changes}) == 1
    before = org.ledger.last
    records = [kind | {"Id": made[0]["id"], "Name": "X"}, kind | {"Id": made[2]["id"], "Nme": "X"}]
    refused = client.patch(path, json={"allOrNone": True, "records": records}).json()
    assert refused[0]["errors"][0]["statusCode"] == "ALL_OR_NONE_OPERATION_ROLLED_BACK"
    assert org.ledger.last == before
    ids = f"{made[0]['id']},{made[2]['id']}"
    assert all(one["success"] for one in client.delete(path, params={"ids": ids}).json())
    assert org.ledger.state("Account") == {}


def test_updated_and_deleted_list_the_ids_of_an_interval_and_the_time_they_cover(
    org: SalesforceOrg, client: Client
) -> None:
    org.clock.advance(-org.clock.now_ms() / 1000 % 60)
    start = "2026-01-01T00:00:00Z"
    keys = org.load("Account", [{"Name": "A"}, {"Name": "B"}])
    client.delete(f"{V}/sobjects/Account/{keys[1]}")
    begun = org.clock.second()
    opened = org.transaction()
    opened.insert("Account", {"Name": "late"})
    org.clock.advance(600)
    span = {"start": start.replace("2026-01-01", begun[:10]), "end": org.clock.second()}
    updated = client.get(f"{V}/sobjects/Account/updated", params=span).json()
    assert updated["ids"] == [keys[0]]
    assert updated["latestDateCovered"] == begun.replace("Z", "+0000")
    deleted = client.get(f"{V}/sobjects/Account/deleted", params=span).json()
    assert [one["id"] for one in deleted["deletedRecords"]] == [keys[1]]
    opened.rollback()
    assert client.get(f"{V}/sobjects/Account/updated", params=span).json()["latestDateCovered"] != begun
    short = {"start": span["end"], "end": span["end"]}
    assert refusal(client.get(f"{V}/sobjects/Account/deleted", params=short)) == (400, "INVALID_REPLICATION_DATE")
    org.delete_log_since = org.clock.second()
    assert refusal(client.get(f"{V}/sobjects/Account/deleted", params=span)) == (400, "INVALID_REPLICATION_DATE")
    assert refusal(client.get(f"{V}/sobjects/AccountHistory/updated", params=span))[1] == "INVALID_TYPE_FOR_OPERATION"


def test_without_view_all_a_user_sees_own_records_only(org: SalesforceOrg, client: Client) -> None:
    mine = client.post(f"{V}/sobjects/Account", json={"Name": "mine"}).json()["id"]
    others = org.load("Account", [{"Name": "others"}])
    org.integration.access["Account"] = Access.OWN
    assert names(client, "") == ["mine"]
    found = client.post(f"{V}/composite/sobjects/Account", json={"ids": [*others, mine], "fields": ["Name"]}).json()
    assert found[0] is None and found[1]["Name"] == "mine"
    org.integration.access["Account"] = Access.NONE
    assert refusal(client.query("SELECT Id FROM Account")) == (400, "INVALID_TYPE")
    assert refusal(client.get(f"{V}/sobjects/Account/describe")) == (404, "NOT_FOUND")
    assert "Account" not in {one["name"] for one in client.get(f"{V}/sobjects").json()["sobjects"]}


def test_a_hidden_field_behaves_as_a_missing_one(org: SalesforceOrg, client: Client) -> None:
    org.load("Account", [{"Name": "A", "Phone": "1"}])
    org.integration.hidden.add(("Account", "Phone"))
    names = {field["name"] for field in client.get(f"{V}/sobjects/Account/describe").json()["fields"]}
    assert "Phone" not in names
    assert refusal(client.query("SELECT Phone FROM Account")) == (400, "INVALID_FIELD")
    assert refusal(client.query("SELECT Id FROM Account WHERE Phone = '1'")) == (400, "INVALID_FIELD")


def test_a_blob_is_a_url_whose_content_is_bytes(org: SalesforceOrg, client: Client) -> None:
    org.load("Attachment", [{"Name": "a.bin", "Body": base64.b64encode(b"\0\xff").decode()}])
    (record,) = client.query("SELECT Name, Body FROM Attachment").json()["records"]
    assert client.get(record["Body"]).content == b"\0\xff"


def test_tooling_lists_channels_and_filters_of_their_members(org: SalesforceOrg, client: Client) -> None:
    member = type(org.channels.selected[0])
    org.channels.custom["Finance__chn"] = [member("Invoice__c", "Paid__c = true")]
    (channel,) = client.query("SELECT Id, DeveloperName FROM PlatformEventChannel", "tooling/query").json()["records"]
    assert channel["DeveloperName"] == "Finance"
    text = "SELECT DeveloperName, EventChannel, SelectedEntity, FilterExpression FROM PlatformEventChannelMember"
    for reference, event, developer_name, expression in (
        ("ChangeEvents", "AccountChangeEvent", "ChangeEvents_AccountChangeEvent", None),
        (channel["Id"], "Invoice__ChangeEvent", "Finance_chn_Invoice_ChangeEvent", "Paid__c = true"),
    ):
        condition = f"WHERE EventChannel = '{reference}' AND SelectedEntity = '{event}'"
        (found,) = client.query(f"{text} {condition}", "tooling/query").json()["records"]
        assert (found["DeveloperName"], found["FilterExpression"]) == (developer_name, expression)


def test_tooling_lists_enriched_fields(org: SalesforceOrg, client: Client) -> None:
    member = type(org.channels.selected[0])
    org.channels.custom["More__chn"] = [member("Account", enriched=("Phone", "Site"))]
    text = "SELECT Id FROM PlatformEventChannelMember WHERE DeveloperName = 'More_chn_AccountChangeEvent'"
    (found,) = client.query(text, "tooling/query").json()["records"]
    text = f"SELECT Field FROM EnrichedField WHERE ChannelMemberId = '{found['Id']}'"
    added = client.query(text, "tooling/query").json()["records"]
    assert [one["Field"] for one in added] == ["Phone", "Site"]


def test_long_answers_are_compressed_for_clients_that_accept_it(org: SalesforceOrg, client: Client) -> None:
    plain = client.get(f"{V}/sobjects/Account/describe", headers={"Accept-Encoding": "identity"})
    packed = client.get(f"{V}/sobjects/Account/describe", headers={"Accept-Encoding": "gzip"})
    assert (plain.headers.get("Content-Encoding"), packed.headers.get("Content-Encoding")) == (None, "gzip")
    assert (
        int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) and packed.json() == plain.json()
    )


def test_event_schemas_are_read_by_name_and_by_id(org: SalesforceOrg, client: Client) -> None:
    current = client.get(f"{V}/sobjects/AccountChangeEvent/eventSchema").json()
    assert current["name"] == "AccountChangeEvent"
    assert client.get(f"{V}/event/eventSchema/{current['uuid']}").json() == current


def test_answers_have_the_time_of_the_org_and_the_remaining_requests(org: SalesforceOrg, client: Client) -> None:
    org.clock.advance(86_400 * 365)
    client.log_in()
    answer = client.get(f"{V}/limits")
    assert "2027" in answer.headers["Date"]
    assert answer.headers["Sforce-Limit-Info"] == f"api-usage={org.requests}/{org.request_limit}"
    org.request_limit = org.requests
    assert refusal(client.get(f"{V}/limits")) == (403, "REQUEST_LIMIT_EXCEEDED")


def test_ordered_faults_hit_the_given_requests_and_are_used_up(org: SalesforceOrg, client: Client) -> None:
    org.faults.http.append(HttpFault(r"GET .*/limits", 503, "SERVER_UNAVAILABLE", after=1, times=2, retry_after=7))
    statuses = [client.get(f"{V}/limits").status_code for _ in range(4)]
    assert statuses == [200, 503, 503, 200]
    org.faults.http.append(HttpFault("limits", 429, "REQUEST_LIMIT_EXCEEDED", retry_after=7))
    answer = client.get(f"{V}/limits")
    assert (*refusal(answer), answer.headers["Retry-After"]) == (429, "REQUEST_LIMIT_EXCEEDED", "7")


def test_tokens_can_expire_between_two_pages(org: SalesforceOrg, client: Client) -> None:
    org.load("Account", [{"Name": f"{number:04}"} for number in range(450)])
    org.faults.expire_tokens_after = 1
    page = client.query("SELECT Id FROM Account", **{"Sforce-Query-Options": "batchSize=200"}).json()
    assert refusal(client.get(page["nextRecordsUrl"])) == (401, "INVALID_SESSION_ID")
    client.log_in()
    assert len(client.get(page["nextRecordsUrl"]).json()["records"]) == 200


def test_several_requests_in_one_are_answered_independently_and_count_once(org: SalesforceOrg, client: Client) -> None:
    org.integration.access["Contact"] = Access.NONE
    calls = [
        {"method": "GET", "url": f"{V}/sobjects/{name}/describe", "referenceId": name}
        for name in ("Account", "Contact", "Invoice__c")
    ]
    before = org.requests
    answer = client.post(f"{V}/composite", json={"compositeRequest": calls}).json()["compositeResponse"]
    assert org.requests == before + 1
    assert [(one["referenceId"], one["httpStatusCode"]) for one in answer] == [
        ("Account", 200), ("Contact", 404), ("Invoice__c", 200),
    ]  # fmt: skip
    assert answer[0]["body"]["name"] == "Account" and answer[1]["body"][0]["errorCode"] == "NOT_FOUND"
    many = client.post(f"{V}/composite", json={"compositeRequest": calls * 9})
    assert refusal(many) == (400, "LIMIT_EXCEEDED")
