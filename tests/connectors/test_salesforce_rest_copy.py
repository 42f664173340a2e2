"""Rows of objects that only REST serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.connectors.sources.salesforce.rest_copy import read_over_rest
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_http import ROOT, VERSION, Answer, HttpServer, http

pytestmark = pytest.mark.server

INVOICE = org.described_as("Invoice__c").schema
WIDE = replace(
    INVOICE,
    columns=(
        INVOICE.column("Id"),
        *(Column(f"A_rather_long_name_of_column_{n}__c", LogicalType(Kind.TEXT)) for n in range(400)),
    ),
)

EXISTS = "IsDeleted = false"


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


def test_rows_are_read_page_by_page_in_the_types_of_the_table(server: HttpServer) -> None:
    rows = [{"Id": f"{n:018d}", "Name": None, "Amount__c": 1.5, "Total__c": None} for n in range(3000)]
    page = {"done": False, "nextRecordsUrl": f"{ROOT}/query/2", "records": rows[:2500]}
    server.on("GET", f"{ROOT}/queryAll", Answer(page))
    server.on("GET", f"{ROOT}/query/2", Answer({"done": True, "records": rows[2500:]}))
    tables = list(read_over_rest(Rest(http(server), VERSION), INVOICE, EXISTS))
    assert [table.num_rows for table in tables] == [2000, 1000]
    assert str(tables[0]["Amount__c"][0]) == "1.50"


def test_case_41_a_wide_object_is_fetched_by_ids_so_that_every_row_is_consistent(server: HttpServer) -> None:
    def whole(request: Any) -> Answer:
        known = [one for one in request.json["ids"] if one not in missing]
        rows = {one: dict.fromkeys(WIDE.names, one) for one in known}
        return Answer([rows.get(one) for one in request.json["ids"]])

    def queried(request: Any) -> Answer:
        """The archived record is not retrieved, but queried."""
        text = request.query["q"]
        among = [one for one in ids if one in text] if " IN " in text else ids
        columns = WIDE.names if text.startswith("SELECT Id, ") else ("Id",)
        found = [one for one in among if " IN " not in text or one == archived]
        return Answer({"done": True, "records": [dict.fromkeys(columns, one) for one in found]})

    ids = [full_id(f"{n:015d}") for n in range(20)]
    archived, missing = ids[17], {ids[7], ids[17]}
    server.on("GET", f"{ROOT}/queryAll", queried)
    server.on("POST", f"{ROOT}/composite/sobjects/Invoice__c", whole)
    tables = list(read_over_rest(Rest(http(server), VERSION), WIDE, EXISTS))
    first, *more = [request.query["q"] for request in server.received if request.query]
    assert first == "SELECT Id FROM Invoice__c WHERE IsDeleted = false"
    assert all(" WHERE IsDeleted = false AND Id IN (" in query for query in more) and len(more) == 2
    found = [one for table in tables for one in table["Id"].to_pylist()]
    assert sorted(found) == [one for one in ids if one != ids[7]], "a record deleted in between is no row"
    assert all(
        set(request.json["fields"]) == set(WIDE.names)
        for request in server.received
        if request.path.endswith("Invoice__c")
    )
