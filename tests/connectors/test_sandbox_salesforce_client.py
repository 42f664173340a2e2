"""An independent client works with the sandbox org: simple-salesforce, through the TLS front."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
import requests
from simple_salesforce import Salesforce
from simple_salesforce.exceptions import (
    SalesforceExpiredSession,
    SalesforceMalformedRequest,
    SalesforceResourceNotFound,
)

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(tls=True) as org:
        yield org


@pytest.fixture(scope="module")
def client(org: SalesforceOrg) -> Iterator[Salesforce]:
    """It builds https addresses itself, from the address in the token response."""
    assert org.certificate is not None
    with requests.Session() as session:
        session.verify = str(org.certificate)
        session.trust_env = False  # the certificates of the machine would precede ours
        form = {"grant_type": "client_credentials", "client_id": org.client_id, "client_secret": org.client_secret}
        token = session.post(f"{org.tls_url}/services/oauth2/token", data=form, timeout=60).json()
        assert token["instance_url"] == org.tls_url
        yield Salesforce(
            instance_url=token["instance_url"], session_id=token["access_token"], session=session, version="66.0"
        )


def test_it_creates_reads_changes_and_deletes(org: SalesforceOrg, client: Salesforce) -> None:
    made = client.Account.create({"Name": "Acme", "BillingCity": "Köln"})
    assert made["success"] is True
    assert client.Account.get(made["id"])["BillingAddress"]["city"] == "Köln"
    assert client.Account.update(made["id"], {"Phone": "1"}) == 204
    assert client.Account.upsert("ERP_Number__c/E-7", {"Name": "Upserted"}) == 201
    assert client.Account.get_by_custom_id("ERP_Number__c", "E-7")["Name"] == "Upserted"
    assert org.ledger.state("Account")[made["id"]]["Phone"] == "1"
    assert client.Account.delete(made["id"]) == 204
    with pytest.raises(SalesforceResourceNotFound):
        client.Account.get(made["id"])


def test_it_describes(client: Salesforce) -> None:
    described = client.Contact.describe()
    assert {field["name"] for field in described["fields"]} >= {"Id", "LastName", "Name", "SystemModstamp"}
    assert any(one["name"] == "Invoice__c" for one in client.describe()["sobjects"])
    assert "DailyApiRequests" in client.limits()


def test_it_queries_page_by_page(org: SalesforceOrg, client: Salesforce) -> None:
    keys = org.load("Contact", [{"LastName": f"Last {number:05}"} for number in range(4500)])
    first = client.query("SELECT Id FROM Contact ORDER BY Id")
    assert (first["totalSize"], len(first["records"]), first["done"]) == (4500, 2000, False)
    second = client.query_more(first["nextRecordsUrl"], identifier_is_url=True)
    assert len(second["records"]) == 2000
    everything = client.query_all("SELECT Id FROM Contact ORDER BY Id")
    assert [record["Id"] for record in everything["records"]] == keys
    assert client.query("SELECT COUNT() FROM Contact")["totalSize"] == 4500
    with pytest.raises(SalesforceMalformedRequest, match="No such column"):
        client.query("SELECT Nothing FROM Contact")


def test_it_reads_in_bulk(org: SalesforceOrg, client: Salesforce) -> None:
    keys = org.load("Invoice__c", [{"Number__c": f'N "{number}",\n', "Amount__c": number} for number in range(1500)])
    text = "SELECT Id, Number__c, Amount__c, Paid__c FROM Invoice__c"
    pages = list(client.bulk2.Invoice__c.query(text, max_records=700, wait=0))
    assert len(pages) == 3
    records = [record for page in pages for record in csv.DictReader(io.StringIO(page, newline=""))]
    assert {record["Id"] for record in records} == set(keys)
    assert records[0].keys() == {"Id", "Number__c", "Amount__c", "Paid__c"}
    assert all(record["Number__c"].endswith('"') or record["Number__c"].endswith(",") for record in records)


def test_nothing_is_left_behind() -> None:
    with SalesforceOrg(tls=True) as org:
        assert org.certificate is not None and org.certificate.stat().st_mode & 0o077 == 0
    assert not org.certificate.parent.exists()
    with pytest.raises(requests.ConnectionError):
        requests.get(org.instance_url, timeout=60)


def test_it_detects_an_ended_session(org: SalesforceOrg, client: Salesforce) -> None:
    org.tokens.expire()
    with pytest.raises(SalesforceExpiredSession):
        client.limits()
