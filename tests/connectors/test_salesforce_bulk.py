"""Bulk queries: jobs, pages that are complete or refused, exact CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.sources.salesforce.bulk import TRIES_PER_PAGE, Bulk, BulkJob, BulkNotSupported
from airflow_cdc_provider.connectors.sources.salesforce.columns import cast_columns, convert_rows
from airflow_cdc_provider.connectors.sources.salesforce.csv_result import IncompletePage, read_page
from airflow_cdc_provider.connectors.sources.salesforce.failures import rest_failure
from airflow_cdc_provider.connectors.sources.salesforce.fetch import row_image
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_http import ROOT, VERSION, Answer, HttpServer, http, refused

JOBS = f"{ROOT}/jobs/query"
JOB = f"{JOBS}/750A"
INVOICE = org.described_as("Invoice__c").schema
ROW = {"Id": org.ADA, "Name": "I-1", "Amount__c": "12.5", "Total__c": "1.25E3"}


def csv_text(rows: Sequence[Sequence[str | None]], names: Sequence[str] = INVOICE.names) -> bytes:
    """As the Bulk API writes it: every value quoted, lines ended by LF."""
    lines = [names, *rows]
    return "".join(
        ",".join(f'"{(value or "").replace(chr(34), chr(34) * 2)}"' for value in line) + "\n" for line in lines
    ).encode()


def page_of(*rows: dict[str, str], announced: int | None = None, **more: Any) -> Answer:
    body = csv_text([[row[name] for name in INVOICE.names] for row in rows])
    count = len(rows) if announced is None else announced
    return Answer(body, headers={"Sforce-NumberOfRecords": str(count), "Content-Type": "text/csv"}, **more)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        made = {"id": "750A", "state": "UploadComplete", "createdDate": "2026-03-01T12:00:00.000+0000"}
        server.on("POST", JOBS, Answer(made))
        server.on(
            "GET", JOB, Answer({"state": "InProgress"}), Answer({"state": "JobComplete", "numberRecordsProcessed": 3})
        )
        pages = [{"resultUrl": f"{JOB}/results?locator={letter}"} for letter in "ab"]
        more = {"resultPages": pages[:1], "nextRecordsUrl": f"{JOB}/resultPages/2", "done": False}
        server.on("GET", f"{JOB}/resultPages", Answer(more))
        server.on("GET", f"{JOB}/resultPages/2", Answer({"resultPages": pages[1:], "done": True}))
        server.on("DELETE", JOB, Answer(status=204))
        server.on("PATCH", JOB, Answer({}))
        yield server


@pytest.fixture
def bulk(server: HttpServer) -> Bulk:
    return Bulk(http(server), VERSION, lambda seconds: None)


@pytest.mark.server
def test_a_query_is_a_job_with_independent_pages(server: HttpServer, bulk: Bulk) -> None:
    reported: list[int] = []
    with bulk.query(INVOICE, progress=reported.append) as job:
        assert (job.id, job.rows, job.created_at.isoformat()) == ("750A", 3, "2026-03-01T12:00:00+00:00")
        assert job.pages == (f"{JOB}/results?locator=a", f"{JOB}/results?locator=b")
    (request,) = [one for one in server.received if one.path == JOBS]
    assert request.json == {
        "operation": "queryAll",
        "query": "SELECT Id, Name, Amount__c, Total__c FROM Invoice__c",
        "contentType": "CSV",
        "columnDelimiter": "COMMA",
        "lineEnding": "LF",
    }
    assert reported == [0]
    assert server.paths("DELETE") == [JOB]


@pytest.mark.server
def test_a_job_has_a_condition(server: HttpServer, bulk: Bulk) -> None:
    with bulk.query(INVOICE, "IsDeleted = false"):
        pass
    (request,) = [one for one in server.received if one.path == JOBS]
    assert request.json["query"].endswith(" FROM Invoice__c WHERE IsDeleted = false")


@pytest.mark.server
def test_a_page_has_rows_in_the_types_of_the_table(server: HttpServer, bulk: Bulk) -> None:
    server.on("GET", f"{JOB}/results", page_of(ROW, {**ROW, "Amount__c": "", "Name": "NA"}))
    page = bulk.page(f"{JOB}/results?locator=a", INVOICE)
    assert page.to_pylist() == [
        {"Id": org.ADA, "Name": "I-1", "Amount__c": Decimal("12.50"), "Total__c": Decimal("1250.00")},
        {"Id": org.ADA, "Name": "NA", "Amount__c": None, "Total__c": Decimal("1250.00")},
    ]
    assert page.schema.field("Total__c").type == pa.decimal128(38, 2)
    request = server.received[-1]
    assert (request.query, request.headers["Accept"]) == ({"locator": "a"}, "text/csv")


@pytest.mark.server
@pytest.mark.parametrize(
    "broken",
    [
        page_of(ROW, announced=2),
        page_of(ROW, cut=50),
        Answer(csv_text([])[:-9], headers={"Sforce-NumberOfRecords": "1"}),
        Answer(page_of(ROW, ROW).body[:-20], headers={"Sforce-NumberOfRecords": "2"}),
        Answer(page_of(ROW).body),
        Answer(b"", headers={"Sforce-NumberOfRecords": "1"}),
    ],
)
def test_an_incomplete_page_is_read_again_by_its_locator(server: HttpServer, bulk: Bulk, broken: Answer) -> None:
    server.on("GET", f"{JOB}/results", broken, page_of(ROW))
    assert bulk.page(f"{JOB}/results?locator=b", INVOICE).num_rows == 1
    assert [one.query for one in server.received if one.path == f"{JOB}/results"] == [{"locator": "b"}] * 2


@pytest.mark.server
def test_a_page_that_is_never_complete_is_an_error_without_values(server: HttpServer, bulk: Bulk) -> None:
    server.on("GET", f"{JOB}/results", Answer(b'"Id"\n"private', headers={"Sforce-NumberOfRecords": "1"}))
    with pytest.raises(SourceUnavailable, match=f"SRC047.*{TRIES_PER_PAGE} times") as raised:
        bulk.page(f"{JOB}/results?locator=a", INVOICE)
    assert "private" not in str(raised.value)


@pytest.mark.server
def test_case_33_a_token_that_expires_between_pages_is_renewed_and_the_locator_kept(
    server: HttpServer, bulk: Bulk
) -> None:
    server.on("GET", f"{JOB}/results", page_of(ROW))
    bulk.page(f"{JOB}/results?locator=a", INVOICE)
    server.expired.add("token-1")
    assert bulk.page(f"{JOB}/results?locator=b", INVOICE).num_rows == 1
    assert [one.query["locator"] for one in server.received if one.query] == ["a", "b", "b"]


REFUSAL = "Entity 'CaseStatus' is not supported by the Bulk API."


@pytest.mark.server
@pytest.mark.parametrize("late", [False, True])
def test_an_object_that_the_bulk_api_refuses_is_distinguished_from_a_failure(
    server: HttpServer, bulk: Bulk, late: bool
) -> None:
    if late:
        server.on("GET", JOB, Answer({"state": "Failed", "errorMessage": REFUSAL}))
    else:
        server.on("POST", JOBS, refused(400, "INVALIDENTITY", REFUSAL))
    with pytest.raises(BulkNotSupported, match="CaseStatus"), bulk.query(INVOICE):
        pass


@pytest.mark.server
@pytest.mark.parametrize("state", ["Failed", "Aborted"])
def test_a_failed_job_is_reported_with_the_message_of_the_server_and_deleted(
    server: HttpServer, bulk: Bulk, state: str
) -> None:
    server.on("GET", JOB, Answer({"state": state, "errorMessage": "InternalServerError : too many retries"}))
    with pytest.raises(SourceUnavailable, match=f"SRC046.*{state}: InternalServerError"), bulk.query(INVOICE):
        pass
    assert server.paths("DELETE") == [JOB]


@pytest.mark.server
def test_an_object_that_answers_only_with_a_filter_is_not_asked_again(server: HttpServer, bulk: Bulk) -> None:
    message = "InvalidBatch : MALFORMED_QUERY: Implementation restriction: ContentDocumentLink requires a filter"
    server.on("GET", JOB, Answer({"state": "Failed", "errorMessage": message}))
    with pytest.raises(CheckFailed, match=r"SRC046.*leave the object out"), bulk.query(INVOICE):
        pass
    refusal = rest_failure(400, "MALFORMED_QUERY", "Implementation restriction: a filter is required", "w")
    assert isinstance(refusal, CheckFailed) and "leave the object out" in str(refusal)


@pytest.mark.server
def test_an_abandoned_job_is_aborted(server: HttpServer) -> None:
    server.on("GET", JOB, Answer({"state": "InProgress"}))

    def enough(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Bulk(http(server), VERSION, enough).query(INVOICE):
        pass
    assert server.paths("PATCH") == server.paths("DELETE") == [JOB]


@pytest.mark.server
def test_a_job_that_cannot_be_deleted_is_no_error(server: HttpServer, bulk: Bulk) -> None:
    server.on("DELETE", JOB, Answer(status=500))
    with bulk.query(INVOICE) as job:
        assert isinstance(job, BulkJob)


@pytest.mark.server
def test_a_slow_job_is_polled_at_growing_intervals(server: HttpServer) -> None:
    waited: list[float] = []
    server.on("GET", JOB, *[Answer({"state": "InProgress"})] * 20, Answer({"state": "JobComplete"}))
    with Bulk(http(server), VERSION, waited.append).query(INVOICE):
        pass
    assert waited[0] < 1 and waited[-1] == 20 and waited == sorted(waited)


def texts(rows: Sequence[Sequence[str | None]]) -> list[dict[str, str | None]]:
    names = ("Id", "a", "b")
    found: list[dict[str, str | None]] = read_page(csv_text(rows, names), names, len(rows)).to_pylist()
    return found


def test_case_42_only_the_empty_text_is_null() -> None:
    rows = [["1", "NA", "null"], ["2", " ", "\t "], ["3", "NULL", "nan"], ["4", "", None], ["5", "#N/A", "None"]]
    assert texts(rows) == [{"Id": i, "a": a or None, "b": b or None} for i, a, b in rows]


def test_case_43_newlines_quotes_and_huge_texts_are_read_exactly() -> None:
    wild = 'a "b"\r\nc,d\n\n"e"\r'
    rows = [["1", wild, "x" * 300_000], ["2", '"', ","], ["3", "\n", '""']]
    assert texts(rows) == [{"Id": i, "a": a, "b": b} for i, a, b in rows]


def test_case_43_a_nul_in_a_text_is_a_character() -> None:
    assert texts([["1", "a\0b", "\0"]]) == [{"Id": "1", "a": "a\0b", "b": "\0"}]


CELL = st.text(st.characters(codec="utf-8"), max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=6))
def test_texts_of_any_characters_are_read_exactly(rows: list[tuple[str, str, str]]) -> None:
    assert texts(rows) == [{"Id": i or None, "a": a or None, "b": b or None} for i, a, b in rows]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5), st.integers(1, 200))
@example([("1", 'x"y')], 4)
@example([("1", "xyz")], 6)
def test_a_truncated_page_is_never_accepted(rows: list[tuple[str, str]], lost: int) -> None:
    whole = csv_text(rows, ("a", "b"))
    body = whole[: -min(lost, len(whole))]
    with pytest.raises(IncompletePage):
        read_page(body, ("a", "b"), len(rows))


def test_columns_are_found_by_name_and_a_missing_one_is_an_error() -> None:
    body = csv_text([["1", "x"]], ("a", "b"))
    assert read_page(body, ("b", "a"), 1).to_pylist() == [{"b": "x", "a": "1"}]
    with pytest.raises(IncompletePage):
        read_page(body, ("a", "c"), 1)


def test_a_page_without_rows_may_have_a_header_or_none() -> None:
    for body in (b"", b"\n", csv_text([])):
        assert read_page(body, INVOICE.names, 0).num_rows == 0


def test_a_table_of_one_column_keeps_its_nulls() -> None:
    assert read_page(b'"a"\n""\n"x"\n""\n', ("a",), 3).to_pylist() == [{"a": None}, {"a": "x"}, {"a": None}]


def test_case_57_rows_read_over_rest_have_the_same_types_and_values() -> None:
    rest = json.loads('{"Name": "I-1", "Amount__c": 12.5, "Total__c": 1.25E3}', parse_float=Decimal) | {"Id": org.ADA}
    by_bulk = read_page(csv_text([list(ROW.values())]), INVOICE.names, 1)
    assert convert_rows([rest], INVOICE).equals(cast_columns(by_bulk, INVOICE))


def test_a_fetched_record_has_the_image_of_its_create_event() -> None:
    reading = org.Reading(org.task("Invoice__c"))
    made = org.event("CREATE", schema="invoice-1", entity="Invoice__c", Name="I\0-1", Amount__c=12.5, Total__c=None)
    (record,) = reading.decode(made)
    row = {"Id": org.ADA, "Name": "I\0-1", "Amount__c": Decimal("12.5"), "Total__c": None}
    assert row_image(row, INVOICE) == record.after


def test_a_truncated_last_value_is_detected_although_no_row_is_missing() -> None:
    for body in (b'"a","b"\n"1","val', b'"a","b"\n"1","', b'"a","b"\n"1","line one\n'):
        with pytest.raises(IncompletePage):
            read_page(body, ("a", "b"), 1)
