"""Bulk API 2.0 query jobs of the sandbox org."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import timedelta

import pytest
import requests

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault
from tests.connectors.salesforce_rest import Client, V, refusal
from tests.waiting import until

pytestmark = pytest.mark.server


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        yield org


@pytest.fixture
def client(org: SalesforceOrg) -> Iterator[Client]:
    with Client(org) as client:
        yield client


def rows(answer: requests.Response) -> list[list[str]]:
    """Without the header."""
    return list(csv.reader(io.StringIO(answer.text, newline="")))[1:]


def test_values_are_exact_and_all_quoted(org: SalesforceOrg, client: Client) -> None:
    text = 'two\nlines, a "quote" and NA'
    org.load("Account", [{"Name": "null", "Description": text, "AnnualRevenue": 12, "Phone": None}])
    job = client.job("SELECT Name, Description, AnnualRevenue, Phone, IsDeleted, CreatedDate FROM Account")
    described = client.wait(job)
    assert (described["jobType"], described["numberRecordsProcessed"], described["object"]) == ("V2Query", 1, "Account")
    answer = client.get(f"{job}/results")
    header, rest = answer.text.split("\n", 1)
    assert header == '"Name","Description","AnnualRevenue","Phone","IsDeleted","CreatedDate"'
    assert rest.startswith('"null","two\nlines, a ""quote"" and NA","12.0","","false","')
    assert rest.endswith('.000Z"\n')
    assert rows(answer)[0][1] == text


def test_pages_follow_locators_that_can_be_read_again(org: SalesforceOrg, client: Client) -> None:
    org.load("Account", [{"Name": str(number)} for number in range(10)])
    job = client.job("SELECT Id FROM Account")
    client.wait(job)
    first = client.get(f"{job}/results", params={"maxRecords": "4"})
    assert first.headers["Sforce-NumberOfRecords"] == "4"
    found, locator = rows(first), first.headers["Sforce-Locator"]
    while locator != "null":
        page = client.get(f"{job}/results", params={"maxRecords": "4", "locator": locator})
        again = client.get(f"{job}/results", params={"maxRecords": "4", "locator": locator})
        assert again.content == page.content
        found, locator = found + rows(page), page.headers["Sforce-Locator"]
    assert sorted(key for (key,) in found) == sorted(org.ledger.state("Account"))


def test_five_pages_at_a_time_can_be_read_in_parallel(org: SalesforceOrg, client: Client) -> None:
    org.bulk.page_rows = 3
    org.load("Account", [{"Name": str(number)} for number in range(20)])
    job = client.job("SELECT Id FROM Account")
    client.wait(job)
    listed = client.get(f"{job}/resultPages").json()
    assert (len(listed["resultPages"]), listed["done"]) == (5, False)
    rest = client.get(listed["nextRecordsUrl"]).json()
    assert (len(rest["resultPages"]), rest["done"], rest["nextRecordsUrl"]) == (2, True, None)
    pages = [client.get(page["resultUrl"]) for page in listed["resultPages"] + rest["resultPages"]]
    assert {key for page in pages for (key,) in rows(page)} == set(org.ledger.state("Account"))


def test_an_empty_result_has_a_header_and_no_locator(client: Client) -> None:
    job = client.job("SELECT Id, Name FROM Account")
    client.wait(job)
    answer = client.get(f"{job}/results")
    assert (answer.text, answer.headers["Sforce-Locator"]) == ('"Id","Name"\n', "null")


def test_rows_have_an_order_of_their_own(org: SalesforceOrg, client: Client) -> None:
    org.bulk.piece_rows = 10
    org.load("Account", [{"Name": str(number)} for number in range(100)])
    job = client.job("SELECT Id FROM Account")
    assert client.wait(job)["isPkChunkingSupported"] is True
    found = [key for (key,) in rows(client.get(f"{job}/results"))]
    assert found != sorted(found) and len(set(found)) == 100
    job = client.job("SELECT Id FROM Account ORDER BY Id DESC")
    assert client.wait(job)["isPkChunkingSupported"] is False
    assert [key for (key,) in rows(client.get(f"{job}/results"))] == sorted(found, reverse=True)


def test_a_job_reads_while_others_commit(org: SalesforceOrg, client: Client) -> None:
    org.bulk.piece_rows = 10
    keys = org.load("Account", [{"Name": "before"} for _ in range(100)])
    org.faults.bulk.append(BulkFault("InProgress", hold_after_rows=40))
    job = client.job("SELECT Name FROM Account")
    until(lambda: client.get(job).json().get("numberRecordsProcessed") == 40, "the job's 40 records")
    with org.transaction() as tx:
        tx.update_many("Account", keys, {"Name": "after"})
    assert refusal(client.get(f"{job}/results")) == (400, "INVALIDJOBSTATE")
    org.bulk.release()
    client.wait(job)
    names = [name for (name,) in rows(client.get(f"{job}/results"))]
    assert (names.count("before"), names.count("after")) == (40, 60)


def test_query_all_contains_deleted_rows(org: SalesforceOrg, client: Client) -> None:
    (key,) = org.load("Account", [{"Name": "A"}])
    client.delete(f"{V}/sobjects/Account/{key}")
    job = client.job("SELECT Id, IsDeleted FROM Account", operation="queryAll")
    client.wait(job)
    assert rows(client.get(f"{job}/results")) == [[key, "true"]]


def test_delimiter_and_line_end_are_chosen_by_the_client(org: SalesforceOrg, client: Client) -> None:
    (key,) = org.load("Account", [{"Name": "A|B"}])
    job = client.job("SELECT Id, Name FROM Account", columnDelimiter="PIPE", lineEnding="CRLF")
    client.wait(job)
    assert client.get(f"{job}/results").text == f'"Id"|"Name"\r\n"{key}"|"A|B"\r\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT Id FROM TaskStatus", "INVALIDENTITY"),
        ("SELECT BillingAddress FROM Account", "FUNCTIONALITY_NOT_ENABLED"),
        ("SELECT Place__c FROM Invoice__c", "FUNCTIONALITY_NOT_ENABLED"),
        ("SELECT Body FROM Attachment", "FUNCTIONALITY_NOT_ENABLED"),
        ("SELECT COUNT() FROM Account", "API_ERROR"),
        ("SELECT Id FROM Account OFFSET 3", "API_ERROR"),
        ("SELECT Nothing FROM Account", "INVALID_FIELD"),
        ("nonsense", "MALFORMED_QUERY"),
    ],
)
def test_queries_that_the_bulk_api_does_not_support_are_refused(client: Client, text: str, code: str) -> None:
    answer = client.post(f"{V}/jobs/query", json={"operation": "query", "query": text})
    assert refusal(answer) == (400, code)


def test_a_job_may_fail_be_slow_or_be_aborted(org: SalesforceOrg, client: Client) -> None:
    org.faults.bulk += [BulkFault(message="Too many retries"), BulkFault("InProgress"), BulkFault("InProgress")]
    failed, slow, unwanted = (client.job("SELECT Id FROM Account") for _ in range(3))
    assert client.wait(failed, "Failed")["errorMessage"] == "Too many retries"
    client.wait(slow, "InProgress")
    assert client.patch(unwanted, json={"state": "Aborted"}).json()["state"] == "Aborted"
    org.bulk.release()
    client.wait(slow)
    client.wait(unwanted, "Aborted")
    assert client.delete(slow).status_code == 204
    assert refusal(client.get(slow)) == (404, "NOT_FOUND")


def test_results_belong_to_the_api_version_of_the_job(client: Client) -> None:
    job = client.job("SELECT Id FROM Account")
    client.wait(job)
    assert refusal(client.get(f"{job.replace('v66.0', 'v65.0')}/results")) == (409, "API_ERROR")


def test_a_job_is_deleted_after_seven_days(org: SalesforceOrg, client: Client) -> None:
    job = client.job("SELECT Id FROM Account")
    client.wait(job)
    org.clock.advance(timedelta(days=7, minutes=1).total_seconds())
    client.log_in()
    assert refusal(client.get(f"{job}/results")) == (404, "NOT_FOUND")


def test_a_body_may_be_truncated(org: SalesforceOrg, client: Client) -> None:
    org.load("Account", [{"Name": f"Account {number}"} for number in range(1000)])
    job = client.job("SELECT Id, Name FROM Account")
    client.wait(job)
    whole = client.get(f"{job}/results")
    org.faults.truncate_csv = 1
    with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError)):
        client.get(f"{job}/results")
    assert client.get(f"{job}/results").content == whole.content


def test_large_numbers_may_be_written_with_an_exponent(org: SalesforceOrg, client: Client) -> None:
    values = [139_000_000, 9_999_999.99, 0, -12_345_678.9, None]
    org.load("Invoice__c", [{"Amount__c": value, "Number__c": str(n)} for n, value in enumerate(values)])
    org.bulk.scientific = True
    job = client.job("SELECT Number__c, Amount__c FROM Invoice__c")
    client.wait(job)
    shown = ["1.39E8", "9999999.99", "0.0", "-1.23456789E7", ""]
    assert sorted(rows(client.get(f"{job}/results"))) == [[str(n), text] for n, text in enumerate(shown)]


def test_formulas_are_computed_when_they_are_read(org: SalesforceOrg, client: Client) -> None:
    org.load("Invoice__c", [{"Amount__c": 200, "Discount__c": 10}])
    job = client.job("SELECT Name, Net__c FROM Invoice__c")
    client.wait(job)
    assert rows(client.get(f"{job}/results")) == [["INV-000001", "180.0"]]
