"""Several records in one request: read up to 2,000 by id, write up to 200."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.ids import full
from airflow_cdc_provider.sandbox.salesforce.objects import ARCHIVED, DELETED
from airflow_cdc_provider.sandbox.salesforce.rest.records import chosen_fields, visible_table
from airflow_cdc_provider.sandbox.salesforce.rest.rendering import renderer
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.transactions import Transaction
from airflow_cdc_provider.sandbox.salesforce.users import User

MAX_READ, MAX_WRITTEN, MAX_IDS_IN_URL = 2_000, 200, 800
Write = Callable[[Transaction, Any], str]


def retrieve(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    """POST {ids, fields}: the records in the order of their ids, null for those that this user does not see."""
    body = request.fields()
    ids, names = body.get("ids", []), body.get("fields", [])
    if len(ids) > MAX_READ:
        raise ApiError(400, "EXCEEDED_ID_LIMIT", f"record limit reached. cannot submit more than {MAX_READ} records")
    return json_response(_records(org, user, version, name, ids, names))


def retrieve_by_url(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    ids = request.query.get("ids", "").split(",")
    if len(ids) > MAX_IDS_IN_URL:
        raise ApiError(414, "URI_TOO_LONG", "the URL is too long")
    return json_response(_records(org, user, version, name, ids, request.query.get("fields", "").split(",")))


def create(org: OrgState, request: Request, user: User, version: str) -> Response:
    def write(transaction: Transaction, record: Any) -> str:
        return transaction.insert(_kind(record), _values(record))

    return _write(org, user, request.fields().get("records", []), _all_or_none(request), write)


def update(org: OrgState, request: Request, user: User, version: str) -> Response:
    def write(transaction: Transaction, record: Any) -> str:
        key = record.get("Id") or record.get("id") or ""
        transaction.update(_kind(record), key, _values(record))
        return full(key)

    return _write(org, user, request.fields().get("records", []), _all_or_none(request), write)


def delete(org: OrgState, request: Request, user: User, version: str) -> Response:
    def write(transaction: Transaction, record: Any) -> str:
        table = org.store.by_id(record)
        if table is None:
            raise ApiError(400, "MALFORMED_ID", f"malformed id {record}")
        transaction.delete(table.type.name, record)
        return full(record)

    ids = request.query.get("ids", "").split(",")
    return _write(org, user, ids, request.query.get("allOrNone") == "true", write)


def _records(org: OrgState, user: User, version: str, name: str, ids: Sequence[str], names: Sequence[str]) -> list[Any]:
    table = visible_table(org, user, name)
    fields = chosen_fields(table.type, user, names)
    if not any(field.name == "Id" for field in fields):
        fields = [table.type.by_name["Id"], *fields]
    render, sees = renderer(table.type, fields, version, org.clock.second()), user.sees(table.type)
    records: list[Any] = []
    for key in ids:
        row = table.rows.get(full(key))
        hidden = row is None or row[DELETED] or row[ARCHIVED] or not sees(row)
        records.append(None if row is None or hidden else render(row))
    return records


def _write(org: OrgState, user: User, records: Sequence[Any], all_or_none: bool, write: Write) -> Response:
    """One transaction. Records with errors do not affect the others, unless ``all_or_none``."""
    if len(records) > MAX_WRITTEN:
        message = f"record limit reached. cannot submit more than {MAX_WRITTEN} records"
        raise ApiError(400, "EXCEEDED_MAX_SIZE_REQUEST", message)
    transaction = org.transaction(user)
    results = [_one(transaction, record, write) for record in records]
    if all_or_none and not all(result["success"] for result in results):
        transaction.rollback()
        rolled = {"statusCode": "ALL_OR_NONE_OPERATION_ROLLED_BACK", "message": "Record rolled back", "fields": []}
        return json_response(
            [{"success": False, "errors": [rolled]} if result["success"] else result for result in results]
        )
    transaction.commit()
    return json_response(results)


def _one(transaction: Transaction, record: Any, write: Write) -> dict[str, Any]:
    try:
        return {"id": write(transaction, record), "success": True, "errors": []}
    except ApiError as error:
        body = {"statusCode": error.code, "message": error.message, "fields": list(error.fields)}
        return {"success": False, "errors": [body]}


def _all_or_none(request: Request) -> bool:
    return bool(request.fields().get("allOrNone", False))


def _kind(record: Any) -> str:
    return str(record.get("attributes", {}).get("type", ""))


def _values(record: Any) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name.lower() not in ("attributes", "id")}
