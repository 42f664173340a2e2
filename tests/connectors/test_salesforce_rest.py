"""The REST client: token renewal, retries, pages, and records by id."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.failures import REST, rest_failure
from airflow_cdc_provider.connectors.sources.salesforce.http import TRIES
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.core.errors import Blocked, CdcError, CheckFailed, SourceUnavailable
from tests.connectors.salesforce_http import ROOT, VERSION, Answer, HttpServer, ReceivedRequest, http, refused

pytestmark = pytest.mark.server

LIMITS = f"{ROOT}/limits"
DAY = datetime(2026, 3, 1, tzinfo=UTC)
CHECK_LIMITS = Answer({"DailyApiRequests": {"Max": 100, "Remaining": 7}})


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        server.on("GET", LIMITS, CHECK_LIMITS)
        yield server


@pytest.fixture
def waited() -> list[float]:
    return []


@pytest.fixture
def rest(server: HttpServer, waited: list[float]) -> Rest:
    return Rest(http(server, waited), VERSION)


def test_a_call_has_the_token_and_reads_decimals_exactly(server: HttpServer, rest: Rest) -> None:
    server.on("GET", f"{ROOT}/queryAll", Answer({"done": True, "records": [{"attributes": {}, "Amount": 0.1}]}))
    assert list(rest.query("SELECT Amount FROM X")) == [{"Amount": Decimal("0.1")}]
    request = server.received[-1]
    assert request.headers["Authorization"] == "Bearer token-1"
    assert request.query == {"q": "SELECT Amount FROM X"}
    assert request.headers["Sforce-Query-Options"] == "batchSize=2000"


def test_a_query_follows_its_cursor_to_the_end(server: HttpServer, rest: Rest) -> None:
    page = {"done": False, "nextRecordsUrl": f"{ROOT}/query/01g-2000", "records": [{"Id": "1"}]}
    server.on("GET", f"{ROOT}/queryAll", Answer(page))
    server.on("GET", f"{ROOT}/query/01g-2000", Answer({"done": True, "records": [{"Id": "2"}]}))
    assert [row["Id"] for row in rest.query("SELECT Id FROM X")] == ["1", "2"]


def test_case_33_a_token_that_expires_between_pages_is_renewed_and_the_same_page_requested_again(
    server: HttpServer, rest: Rest
) -> None:
    def expire(request: Any) -> Answer:
        server.expired.add("token-1")
        return Answer({"done": False, "nextRecordsUrl": f"{ROOT}/query/2", "records": [{"Id": "1"}]})

    server.on("GET", f"{ROOT}/queryAll", expire)
    server.on("GET", f"{ROOT}/query/2", Answer({"done": True, "records": [{"Id": "2"}]}))
    assert [row["Id"] for row in rest.query("q")] == ["1", "2"]
    assert server.paths() == [f"{ROOT}/queryAll", f"{ROOT}/query/2", f"{ROOT}/query/2"]
    assert server.issued == 2


def test_a_token_that_is_refused_twice_is_not_renewed_in_a_loop(server: HttpServer, rest: Rest) -> None:
    server.expired |= {"token-1", "token-2"}
    with pytest.raises(SourceUnavailable, match="CON009"):
        rest.limits()
    assert server.issued == 2


@pytest.mark.parametrize("status", [406, 429, 500, 502, 503])
def test_temporary_failures_are_retried_after_a_pause(
    server: HttpServer, rest: Rest, waited: list[float], status: int
) -> None:
    server.on("GET", LIMITS, Answer(b"<html>", status), refused(status, "SERVER_UNAVAILABLE"), CHECK_LIMITS)
    assert rest.limits() == {"DailyApiRequests": (100, 7)}
    assert len(waited) == 2 and 1 <= waited[0] <= 2 <= waited[1] <= 4


def test_a_retry_after_header_is_followed_up_to_a_minute(server: HttpServer, rest: Rest, waited: list[float]) -> None:
    too_many = [Answer(b"", 503, {"Retry-After": text}) for text in ("3", "3600", "soon")]
    date = {"Retry-After": "Sun, 01 Mar 2026 00:00:07 GMT", "Date": "Sun, 01 Mar 2026 00:00:00 GMT"}
    server.on("GET", LIMITS, *too_many, Answer(b"", 429, date), CHECK_LIMITS)
    rest.limits()
    assert waited[:2] == [3, 60] and 4 <= waited[2] <= 8 and waited[3] == 7


def test_retries_end(server: HttpServer, rest: Rest, waited: list[float]) -> None:
    server.on("GET", LIMITS, Answer(b"", 503))
    with pytest.raises(SourceUnavailable, match=r"CON013.*HTTP 503"):
        rest.limits()
    assert len(waited) == TRIES - 1 and len(server.paths()) == TRIES


def test_a_used_up_request_limit_ends_the_run_at_once(server: HttpServer, rest: Rest, waited: list[float]) -> None:
    server.on("GET", LIMITS, refused(403, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded."))
    with pytest.raises(SourceUnavailable, match=r"SRC040.*Limit exceeded"):
        rest.limits()
    assert (waited, len(server.paths())) == ([], 1)


def test_a_connection_that_breaks_within_an_answer_is_retried(server: HttpServer, rest: Rest) -> None:
    server.on("GET", LIMITS, Answer(b'{"Daily', cut=100), CHECK_LIMITS)
    assert rest.limits() == {"DailyApiRequests": (100, 7)}


@pytest.mark.parametrize(
    ("status", "code", "kind", "ours"),
    [
        (400, "MALFORMED_QUERY", CheckFailed, "SRC042"),
        (400, "INVALID_FIELD", SourceUnavailable, "SRC042"),
        (400, "INVALID_TYPE", CheckFailed, "SRC042"),
        (403, "INSUFFICIENT_ACCESS", CheckFailed, "SRC010"),
        (403, "", CheckFailed, "SRC010"),
        (404, "NOT_FOUND", CheckFailed, "SRC042"),
        (404, "", CheckFailed, "SRC042"),
        (410, "", CheckFailed, "SRC012"),
        (400, "INVALID_QUERY_LOCATOR", SourceUnavailable, "SRC044"),
        (400, "INVALID_REPLICATION_DATE", Blocked, "SRC045"),
        (418, "SOMETHING_NEW", CheckFailed, "SRC042"),
    ],
)
def test_a_refusal_is_reported_with_its_code_and_not_repeated(
    server: HttpServer, rest: Rest, status: int, code: str, kind: type[CdcError], ours: str
) -> None:
    server.on("GET", f"{ROOT}/queryAll", refused(status, code, "row\nSELECT secret") if code else Answer(b"", status))
    with pytest.raises(kind, match=ours) as raised:
        list(rest.query("SELECT Id FROM X WHERE Name = 'private'"))
    assert "private" not in str(raised.value) and "secret" not in str(raised.value)
    assert len(server.paths()) == 1


@pytest.mark.parametrize("code", sorted(REST))
def test_every_code_has_a_message_and_a_remedy(code: str) -> None:
    (problem,) = rest_failure(400, code, "m", "w").problems
    assert problem.what and problem.do and code in problem.found


def test_records_are_fetched_two_thousand_at_a_time_and_matched_by_position(server: HttpServer, rest: Rest) -> None:
    def found(request: Any) -> Answer:
        return Answer([None if one.endswith("7") else {"attributes": {}, "Id": one} for one in request.json["ids"]])

    server.on("POST", f"{ROOT}/composite/sobjects/Account", found)
    ids = [f"{n:018d}" for n in range(4001)]
    rows = rest.retrieve("Account", ids, ["Id"])
    assert [len(request.json["ids"]) for request in server.received if request.body and b"ids" in request.body] == [
        2000,
        2000,
        1,
    ]
    assert list(rows) == ids
    assert rows[ids[8]] == {"Id": ids[8]} and rows[ids[7]] is None


def test_the_list_of_deleted_records_is_requested_for_an_interval_in_utc(server: HttpServer, rest: Rest) -> None:
    gone = {"deletedRecords": [{"id": "b", "deletedDate": "2026-03-01T10:00:00.000+0000"}]}
    server.on("GET", f"{ROOT}/sobjects/Account/deleted/", Answer(gone))
    until = datetime(2026, 3, 1, 11, 59, tzinfo=UTC)
    assert rest.deleted("Account", DAY, until) == ("b",)
    assert server.received[-1].query == {"start": "2026-03-01T00:00:00+00:00", "end": "2026-03-01T11:59:00+00:00"}


def test_case_37_the_clock_is_that_of_the_server(server: HttpServer, rest: Rest) -> None:
    server.on("GET", LIMITS, Answer({}, 200, {"Date": "Sun, 01 Mar 2026 12:00:00 GMT"}))
    assert rest.now() == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_metadata_is_read_page_by_page(server: HttpServer, rest: Rest) -> None:
    page = {"done": False, "nextRecordsUrl": f"{ROOT}/tooling/query/2", "records": [{"attributes": {}, "n": 1}]}
    server.on("GET", f"{ROOT}/tooling/query", Answer(page))
    server.on("GET", f"{ROOT}/tooling/query/2", Answer({"done": True, "records": [{"n": 2}]}))
    assert rest.tooling("SELECT n FROM X") == [{"n": 1}, {"n": 2}]


def test_threads_that_find_an_expired_token_together_log_in_once(server: HttpServer) -> None:
    shared = http(server)
    stale = shared.token()
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: shared.renew(stale), range(8)))
    assert server.issued == 2 and {token.access_token for token in tokens} == {"token-2"}


def test_a_redirect_is_not_followed_with_the_token(server: HttpServer, rest: Rest) -> None:
    server.on("GET", LIMITS, Answer(b"", 302, {"Location": "http://elsewhere.example/"}))
    with pytest.raises(CheckFailed, match=r"CON011.*instance_url"):
        rest.limits()


def test_a_maintenance_page_instead_of_an_answer_can_be_retried(server: HttpServer, rest: Rest) -> None:
    server.on("GET", LIMITS, Answer(b"<html>down for maintenance</html>", 200, {"Content-Type": "text/html"}))
    with pytest.raises(SourceUnavailable, match=r"CON013.*text/html, and no JSON"):
        rest.limits()


def test_no_error_contains_a_token(server: HttpServer, rest: Rest) -> None:
    server.on("GET", LIMITS, refused(400, "MALFORMED_QUERY"))
    with pytest.raises(CdcError) as raised:
        rest.limits()
    assert "token-1" not in str(raised.value) and "token-1" not in repr(raised.value)


def composite(request: ReceivedRequest) -> Answer:
    """Objects whose name begins with an X are hidden."""
    requested = [(one["url"], one["referenceId"]) for one in request.json["compositeRequest"]]
    gone = [{"errorCode": "NOT_FOUND", "message": "no"}]
    answers = [
        (404, gone) if "/X" in url else (200, {"name": url.split("/")[-2], "fields": []}) for url, _ in requested
    ]
    replies = [
        {"httpStatusCode": status, "body": body, "httpHeaders": {}, "referenceId": name}
        for (status, body), (_, name) in zip(answers, requested, strict=True)
    ]
    return Answer({"compositeResponse": replies})


def test_objects_are_described_25_at_a_time_in_one_call_and_hidden_ones_left_out(
    server: HttpServer, rest: Rest
) -> None:
    server.on("POST", f"{ROOT}/composite", composite)
    names = [f"{'X' if number % 10 == 9 else 'A'}{number}" for number in range(60)]
    assert [one.schema.table for one in rest.describe_all(names)] == sorted(name for name in names if name[0] == "A")
    calls = [len(one.json["compositeRequest"]) for one in server.received if one.path == f"{ROOT}/composite"]
    assert calls == [25, 25, 10]


def test_a_description_that_fails_for_another_reason_is_an_error(server: HttpServer, rest: Rest) -> None:
    body = [{"errorCode": "UNKNOWN_EXCEPTION", "message": "no"}]
    failed = {"httpStatusCode": 500, "body": body, "httpHeaders": {}, "referenceId": "at0"}
    server.on("POST", f"{ROOT}/composite", Answer({"compositeResponse": [failed]}))
    with pytest.raises(CdcError, match="UNKNOWN_EXCEPTION"):
        rest.describe_all(["Account"])
