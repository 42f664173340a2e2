"""query, queryAll and their pages."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.sandbox.salesforce.cursors import Cursor
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.rest.rendering import renderer
from airflow_cdc_provider.sandbox.salesforce.soql.parse import malformed, parse
from airflow_cdc_provider.sandbox.salesforce.soql.run import find_rows, named_fields
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import User

MAX_PAGE_ROWS, MIN_PAGE_ROWS = 2_000, 200


def query(org: OrgState, request: Request, user: User, version: str) -> Response:
    return _query(org, request, user, version, everything=False)


def query_all(org: OrgState, request: Request, user: User, version: str) -> Response:
    """With deleted and archived rows."""
    return _query(org, request, user, version, everything=True)


def query_more(org: OrgState, request: Request, user: User, version: str, locator: str) -> Response:
    key, _, start = locator.partition("-")
    if not start.isdigit():
        raise ApiError(400, "INVALID_QUERY_LOCATOR", "invalid query locator")
    return json_response(_page(org, org.cursors.find(key), key, int(start), version))


def _query(org: OrgState, request: Request, user: User, version: str, everything: bool) -> Response:
    text = request.query.get("q", "")
    if not text:
        raise malformed("unexpected end of query")
    asked = parse(text)
    table = org.store.table(asked.object)
    user.require(table.type)
    if not table.type.queryable:
        raise ApiError(400, "INVALID_TYPE_FOR_OPERATION", f"entity type {table.type.name} does not support query")
    fields = named_fields(asked, table.type, user)
    with org.store.lock:
        rows = find_rows(asked, table, user, everything, org.clock.second())
    if asked.counts:
        return json_response({"totalSize": len(rows), "done": True, "records": []})
    page_rows = _page_rows(request)
    if any(field.kind == "base64" for field in fields):
        page_rows = 1
    if len(rows) <= page_rows:
        page = Cursor(table.type, fields, rows, page_rows, 0)
        return json_response(_page(org, page, "", 0, version))
    key = org.cursors.open(table.type, fields, rows, page_rows)
    return json_response(_page(org, org.cursors.find(key), key, 0, version))


def _page(org: OrgState, cursor: Cursor, key: str, start: int, version: str) -> dict[str, Any]:
    if start >= len(cursor.rows) > 0:
        raise ApiError(400, "INVALID_QUERY_LOCATOR", "invalid query locator")
    render = renderer(cursor.object, cursor.fields, version, org.clock.second())
    end = start + cursor.page_rows
    done = end >= len(cursor.rows)
    body: dict[str, Any] = {"totalSize": len(cursor.rows), "done": done}
    if not done:
        body["nextRecordsUrl"] = f"/services/data/{version}/query/{key}-{end}"
    return body | {"records": [render(row) for row in cursor.rows[start:end]]}


def _page_rows(request: Request) -> int:
    """The size in the header Sforce-Query-Options, within the limits."""
    for option in request.headers.get("sforce-query-options", "").split(","):
        name, _, number = option.strip().partition("=")
        if name == "batchSize" and number.strip().isdigit():
            return min(MAX_PAGE_ROWS, max(MIN_PAGE_ROWS, int(number)))
    return MAX_PAGE_ROWS
