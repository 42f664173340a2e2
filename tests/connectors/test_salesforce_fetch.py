"""Records fetched by id: found, deleted, archived, or unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.fetch import FetchedRow, FetchResult, fetch, fetch_each
from airflow_cdc_provider.connectors.sources.salesforce.refetch import refetch
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, parse_description
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_events import ADA, BOB, EVE
from tests.connectors.salesforce_http import ROOT, VERSION, Answer, HttpServer, http, refused

pytestmark = pytest.mark.server

FIELDS = [
    org.required("Id", "id"),
    org.required("IsDeleted", "boolean"),
    org.described_field("MasterRecordId", "reference"),
    org.described_field("Subject"),
    org.described_field("Status"),
    org.required("SystemModstamp", "datetime"),
]
TASK = parse_description({"name": "Task", "fields": FIELDS})
RETRIEVE, QUERY_ALL = f"{ROOT}/composite/sobjects/Task", f"{ROOT}/queryAll"
AT = "2026-03-01T12:00:05.000+0000"
CHANGED = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


class Records:
    """The records of the org by id. Only queryAll shows deleted and ``archived`` ones."""

    def __init__(self, server: HttpServer, *rows: dict[str, Any], archived: tuple[str, ...] = ()) -> None:
        self.rows = {row["Id"]: {**dict.fromkeys(TASK.schema.names), "SystemModstamp": AT, **row} for row in rows}
        self.archived = archived
        server.on("POST", RETRIEVE, self._retrieve)
        server.on("GET", QUERY_ALL, self._query)

    def _retrieve(self, request: Any) -> Answer:
        visible = {one: row for one, row in self.rows.items() if not row["IsDeleted"] and one not in self.archived}
        fields = request.json["fields"]
        return Answer([{f: visible[one][f] for f in fields} if one in visible else None for one in request.json["ids"]])

    def _query(self, request: Any) -> Answer:
        columns = request.query["q"].removeprefix("SELECT ").partition(" FROM ")[0].split(", ")
        found = [row for one, row in self.rows.items() if f"'{one}'" in request.query["q"]]
        return Answer({"done": True, "records": [{column: row[column] for column in columns} for row in found]})


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


def fetched(server: HttpServer, *ids: str, described_as: ObjectSchema = TASK) -> FetchResult:
    return fetch(Rest(http(server), VERSION), TASK.schema, ids, lambda entity: described_as)


def record(one: str, **values: Any) -> dict[str, Any]:
    return {"Id": one, "IsDeleted": False, **values}


def test_a_record_is_complete_with_the_time_of_its_last_change(server: HttpServer) -> None:
    Records(server, record(ADA, Subject="call\0"))
    (found,) = fetched(server, ADA).rows.values()
    assert found.modstamp == datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
    assert json.loads(found.after) == {
        "Id": ADA,
        "IsDeleted": False,
        "MasterRecordId": None,
        "Subject": "call\0",
        "Status": None,
        "SystemModstamp": "2026-03-01T12:00:05Z",
    }


def test_case_23_a_record_that_is_not_found_is_deleted_merged_archived_or_unknown(server: HttpServer) -> None:
    merged, gone = "001000000000004AAA", "001000000000005AAA"
    Records(
        server,
        record(ADA),
        {"Id": BOB, "IsDeleted": True},
        {"Id": merged, "IsDeleted": True, "MasterRecordId": ADA},
        record(EVE, Status="Completed"),
        archived=(EVE,),
    )
    found = fetched(server, ADA, BOB, EVE, merged, gone)
    assert found.deleted == {BOB: CHANGED, merged: CHANGED}
    assert set(found.rows) == {ADA, EVE} and found.missing == {gone}


def test_case_25_an_archived_record_is_not_deleted_and_keeps_its_values(server: HttpServer) -> None:
    Records(server, record(EVE, Status="Completed"), archived=(EVE,))
    found = fetched(server, EVE)
    assert found.deleted == {} and found.missing == frozenset()
    assert json.loads(found.rows[EVE].after)["Status"] == "Completed"


def test_case_24_a_removed_field_is_left_out_and_the_others_are_fetched(server: HttpServer) -> None:
    Records(server, record(ADA, Subject="call"))
    answers = [TASK, parse_description({"name": "Task", "fields": [f for f in FIELDS if f["name"] != "Status"]})]
    serve = Records(server, record(ADA, Subject="call"))._retrieve
    server.on("POST", RETRIEVE, refused(400, "INVALID_FIELD", "No such column 'Status'"), serve)
    rest = Rest(http(server), VERSION)
    found = fetch(rest, TASK.schema, [ADA], lambda entity: answers.pop(0))
    assert json.loads(found.rows[ADA].after).keys() == set(TASK.schema.names) - {"Status"}


def test_case_24_a_field_that_stays_unreadable_is_retried_once(server: HttpServer) -> None:
    server.on("POST", RETRIEVE, refused(400, "INVALID_FIELD"))
    with pytest.raises(SourceUnavailable, match="SRC042"):
        fetched(server, ADA)
    assert len(server.paths("POST")) == 2


def test_an_object_without_a_recycle_bin_is_not_searched_for_deleted_records(server: HttpServer) -> None:
    server.on("POST", RETRIEVE, Answer([None]))
    plain = parse_description({"name": "Task", "fields": [f for f in FIELDS if f["name"] != "IsDeleted"]})
    assert fetched(server, ADA, described_as=plain).missing == {ADA}
    assert QUERY_ALL not in server.paths()


def test_an_object_without_a_modstamp_does_not_decide_which_events_are_newer(server: HttpServer) -> None:
    Records(server, record(ADA))
    plain = parse_description({"name": "Task", "fields": [f for f in FIELDS if f["name"] != "SystemModstamp"]})
    (found,) = fetched(server, ADA, described_as=plain).rows.values()
    assert isinstance(found, FetchedRow) and found.modstamp is None


def test_many_ids_are_requested_in_queries_that_fit_a_url(server: HttpServer) -> None:
    Records(server)
    ids = [f"001{n:012d}AAA" for n in range(700)]
    assert fetched(server, *ids).missing == set(ids)
    queries = [request.query["q"] for request in server.received if request.path == QUERY_ALL]
    assert len(queries) == 3 and all(len(query) < 12_000 for query in queries)


def gap_record(one: str, change: str = "GAP_UPDATE") -> ChangeRecord:
    return ChangeRecord("Task", "gap", "1", "s", key=canonical([one]), after=canonical({"change_type": change}))


def rows(server: HttpServer, *request: ChangeRecord, sees_all: bool = False) -> dict[str, ChangeRecord]:
    found = refetch(Rest(http(server), VERSION), TASK.schema, request, lambda entity: TASK, lambda: sees_all)
    return {json.loads(record.key or record.key_before or "")[0]: record for record in found}


def test_case_23_rows_of_gaps_are_complete_or_deletes_and_a_hidden_record_is_not_deleted(server: HttpServer) -> None:
    gone, hidden, repeated = "001000000000004AAA", "001000000000005AAA", "001000000000006AAA"
    server.on("GET", f"{ROOT}/limits", lambda request: Answer({}, headers={"Date": "Sun, 01 Mar 2026 12:00:09 GMT"}))
    Records(server, record(ADA, Subject="call"), {"Id": BOB, "IsDeleted": True}, record(EVE), archived=(EVE,))
    found = rows(
        server,
        gap_record(ADA),
        gap_record(BOB),
        gap_record(EVE, "GAP_DELETE"),
        gap_record(gone, "GAP_DELETE"),
        gap_record(hidden),
        replace(gap_record(repeated), after=canonical({"op": "delete"})),
    )
    assert {one: (row.op, row.commit_ts) for one, row in found.items()} == {
        ADA: ("read", CHANGED),
        EVE: ("read", CHANGED),
        BOB: ("delete", CHANGED),
        gone: ("delete", datetime(2026, 3, 1, 12, 0, 9, tzinfo=UTC)),
        repeated: ("delete", datetime(2026, 3, 1, 12, 0, 9, tzinfo=UTC)),
    }
    assert found[ADA].after_complete and json.loads(found[ADA].after or "")["Subject"] == "call"


@pytest.mark.parametrize("sees_all", [True, False])
def test_a_record_that_left_without_an_event_is_deleted_where_the_user_sees_every_record(
    server: HttpServer, sees_all: bool
) -> None:
    gone = "001000000000004AAA"
    server.on("GET", f"{ROOT}/limits", lambda request: Answer({}, headers={"Date": "Sun, 01 Mar 2026 12:00:09 GMT"}))
    Records(server, record(ADA))
    found = rows(server, gap_record(ADA), gap_record(gone), sees_all=sees_all)
    assert found.keys() == ({ADA, gone} if sees_all else {ADA})
    if sees_all:
        assert (found[gone].op, found[gone].commit_ts) == ("delete", datetime(2026, 3, 1, 12, 0, 9, tzinfo=UTC))


def test_a_value_of_another_type_is_an_error_that_does_not_contain_it(server: HttpServer) -> None:
    Records(server, record(ADA, SystemModstamp="yesterday"))
    with pytest.raises(SourceUnavailable, match="SRC056") as raised:
        rows(server, gap_record(ADA))
    assert "yesterday" not in str(raised.value)


def invoice(precision: int, scale: int) -> ObjectSchema:
    fields = [
        org.required("Id", "id"),
        org.number("Amount__c", "double", precision, scale),
        org.described_field("Of__c"),
    ]
    return parse_description({"name": "Task", "fields": fields})


@pytest.mark.parametrize(
    ("now", "amounts", "found"),
    [
        (invoice(8, 0), (40.25, 41), {ADA: "40", BOB: "41"}),
        (invoice(10, 2), (40.25, 41), {BOB: "41"}),
        (invoice(12, 0), (1234567890, 41), {BOB: "41"}),
    ],
)
def test_a_row_with_more_digits_than_its_column_is_not_rounded_where_the_field_was_changed(
    server: HttpServer, now: ObjectSchema, amounts: tuple[float, ...], found: dict[str, str]
) -> None:
    """It waits for the event that brings the new type; digits that Salesforce keeps and does not show are rounded."""
    server.on("GET", QUERY_ALL, Answer({"done": True, "records": []}))
    answers = [{"Id": one, "Amount__c": amount, "Of__c": None} for one, amount in zip((ADA, BOB), amounts, strict=True)]
    server.on("POST", RETRIEVE, Answer(answers))
    fetching = refetch(
        Rest(http(server), VERSION),
        invoice(8, 0).schema,
        [gap_record(ADA), gap_record(BOB)],
        lambda _: now,
        lambda: False,
    )
    read: dict[str, str] = {}
    try:
        for row in fetching:
            image = json.loads(row.after or "")
            read[image["Id"]] = image["Amount__c"]
    except SourceUnavailable as error:
        assert ADA not in found and error.problems[0].code == "SRC056"
        assert f"it is {now.schema.column('Amount__c').type}" in error.problems[0].found
    assert read == found


def test_a_field_of_another_type_is_not_converted(server: HttpServer) -> None:
    text = parse_description({"name": "Task", "fields": [org.required("Id", "id"), org.described_field("Amount__c")]})
    server.on("POST", RETRIEVE, Answer([{"Id": ADA, "Amount__c": "12"}, {"Id": BOB, "Amount__c": None}]))
    schema = replace(invoice(8, 0).schema, columns=invoice(8, 0).schema.columns[:2])
    found = fetch_each(Rest(http(server), VERSION), schema, [ADA, BOB], lambda _: text)
    assert found.rows.keys() == {BOB} and found.unreadable.keys() == {ADA}
